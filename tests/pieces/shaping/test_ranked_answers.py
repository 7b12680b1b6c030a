"""AEPO's reward of ranked candidates."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

# (N, rank of the first hit) -> 1 + 1/sqrt(N k) or 1 - 1/N; N < 0: malformed.
TABLE = [
  ((1, 1), 2.0),
  ((1, 0), 0.0),
  ((3, 1), 1.57735),
  ((3, 2), 1.40825),
  ((4, 4), 1.25),
  ((2, 0), 0.5),
  ((4, 0), 0.75),
  ((0, 0), 0.0),
  ((-1, 0), -1.0),
  ((-1, 1), -1.0),
]


def rewards(toy, pairs, **fields):
  """The reward of each (answers, rank)."""
  pairs = np.asarray(pairs)
  traj = toy.trajectories(
    np.ones((len(pairs), 1)),
    group_size=1,
    extras={'num_answers_B': pairs[:, 0], 'hit_rank_B': pairs[:, 1]},
  )
  return shaping.RankedAnswers(**fields)(
    CreditContext(jnp.full(len(pairs), 7.0), traj)
  ).value


def test_by_hand(toy):
  """The table above, whatever the reward was before."""
  pairs, expected = zip(*TABLE, strict=True)
  np.testing.assert_allclose(rewards(toy, pairs), expected, rtol=1e-5)


def test_one_answer_is_a_binary_reward(toy):
  """E1: without the format reward +-1."""
  actual = rewards(toy, [(1, 1), (1, 0)], format=0.0)
  np.testing.assert_allclose(actual, [1, -1], rtol=1e-6)


def test_more_candidates_cost_hits_and_soften_misses(toy):
  """Falls with N and k on hits, rises with N on misses."""
  hits = rewards(toy, [(n, 1) for n in (1, 2, 3, 4)])
  ranks = rewards(toy, [(4, k) for k in (1, 2, 3, 4)])
  misses = rewards(toy, [(n, 0) for n in (1, 2, 3, 4)])
  assert (np.diff(hits) < 0).all() and (np.diff(ranks) < 0).all()
  assert (np.diff(misses) > 0).all()


def test_a_missing_key_is_named(toy):
  """Nothing is guessed."""
  traj = toy.trajectories(np.ones((1, 1)), group_size=1)
  with pytest.raises(ValueError, match='num_answers_B'):
    shaping.RankedAnswers()(CreditContext(jnp.zeros(1), traj))
