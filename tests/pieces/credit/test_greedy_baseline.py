"""The baseline of ReMax by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

PIECE = credit.GreedyBaseline()
MASK = np.array([[1.0, 1, 0], [1, 1, 1], [1, 0, 0]])
GREEDY = np.array([0.25, 1.0, 0.5])
REWARD = jnp.array([1.0, 0.0, 0.5])


def rows(toy, greedy=GREEDY, **fields):
  """Three prompts with one sample each."""
  extras = {} if greedy is None else {'greedy_reward_B': greedy}
  fields = {'group_size': 1, 'extras': extras, **fields}
  return toy.trajectories(fields.pop('mask', MASK), **fields)


def test_by_hand(toy):
  """1 - .25, 0 - 1; a sample that does as well as the greedy one has 0."""
  np.testing.assert_array_equal(
    PIECE(CreditContext(REWARD, rows(toy))).value, [0.75, -1.0, 0.0]
  )


def test_returns_to_go_by_hand(toy):
  """Token rewards .5, .25 give returns .75, .25; less .25."""
  reward_BT = jnp.array([[0.5, 0.25, 9], [0, 0, 1], [0.5, 9, 9]])
  returns = credit.DiscountedReturn()(CreditContext(reward_BT, rows(toy))).value
  expected = [[0.5, 0, 0], [0, 0, 0], [0, 0, 0]]
  np.testing.assert_allclose(
    PIECE(CreditContext(returns, rows(toy))).value, expected, atol=1e-7
  )


def test_without_a_greedy_reward_it_is_reinforce(toy):
  """E0: baseline 0 leaves the rewards."""
  found = PIECE(CreditContext(REWARD, rows(toy, np.zeros(3)))).value
  np.testing.assert_array_equal(found, REWARD)


def test_a_constant_of_the_prompt_drops_out(toy):
  """E0: in the sample and in the greedy response."""
  shift = np.array([4.0, -2.0, 8.0])
  found = PIECE(CreditContext(REWARD + shift, rows(toy, GREEDY + shift))).value
  np.testing.assert_array_equal(
    found, PIECE(CreditContext(REWARD, rows(toy))).value
  )


def test_invalid_rows_are_zero(toy):
  """Whatever is there, and if no token is trained nothing is."""
  traj = rows(toy, valid_B=np.array([0.0, 1, 1]))
  bad = jnp.array([jnp.nan, 0.0, 0.5])
  np.testing.assert_array_equal(
    PIECE(CreditContext(bad, traj)).value, [0.0, -1.0, 0.0]
  )
  none = rows(toy, mask=np.zeros((3, 3)))
  np.testing.assert_array_equal(
    PIECE(CreditContext(jnp.ones((3, 3)), none)).value, 0.0
  )


def test_what_fills_it_in_is_named(toy):
  """Without the second round."""
  with pytest.raises(ValueError, match='method.rollout=GreedyResponse'):
    PIECE(CreditContext(REWARD, rows(toy, None)))
