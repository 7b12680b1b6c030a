"""KL in the reward whose coefficient follows a target.

Rows of two tokens: k1 = [.5, -1] and [2, 1], sums -.5 and 3.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

OLD = np.array([[-1.0, -2.0, 0.0], [-1.0, -1.0, 0.0]])
REF = np.array([[-1.5, -1.0, 0.0], [-3.0, -2.0, 0.0]])
MASK = np.array([[1, 1, 0], [1, 1, 0]])


def shaped(toy, piece, rewards=(1.0, 0.0), state=None, **fields):
  """Token rewards and the coefficient after the rollout."""
  fields = {'logp_old_BT': OLD, 'logp_ref_BT': REF} | fields
  traj = toy.trajectories(MASK, group_size=1, **fields)
  state = piece.init(1) if state is None else state
  reward_BT, state = piece(CreditContext(jnp.array(rewards), traj, state))
  return reward_BT, state


def test_by_hand(toy):
  """Mean k is 1.25; of target 1 the error .25 is cut at .2, of 1.5 it is
  -1/6; beta .1 becomes .1 (1 + .5 error)."""
  for target, beta in ((1.0, 0.11), (1.5, 0.1 - 0.05 / 6), (100.0, 0.09)):
    piece = shaping.AdaptiveKLInReward(target=target, gain=0.5)
    reward_BT, state = shaped(toy, piece)
    expected = [[-0.05, 1.1, 0.0], [-0.2, -0.1, 0.0]]
    np.testing.assert_allclose(reward_BT, expected, rtol=1e-6)
    np.testing.assert_allclose(state['beta'], beta, rtol=1e-6)


def test_the_next_rollout_has_the_new_coefficient(toy):
  piece = shaping.AdaptiveKLInReward()
  reward_BT, _ = shaped(toy, piece, state={'beta': jnp.float32(2.0)})
  expected = [[-1.0, 3.0, 0.0], [-4.0, -2.0, 0.0]]
  np.testing.assert_allclose(reward_BT, expected, rtol=1e-6)


def test_constants_of_okapi(toy):
  """128 rows of a horizon of 10000 and a divergence below 4.8 of 6 nats."""
  _, state = shaped(toy, shaping.AdaptiveKLInReward())
  expected = 0.1 * (1 - 0.2 * 128 / 10000)
  np.testing.assert_allclose(state['beta'], expected, rtol=1e-6)


def test_gain_zero_is_kl_in_reward(toy):
  """E0."""
  piece = shaping.AdaptiveKLInReward(start=0.3, gain=0.0)
  reward_BT, state = shaped(toy, piece)
  traj = toy.trajectories(MASK, group_size=1, logp_old_BT=OLD, logp_ref_BT=REF)
  plain = shaping.KLInReward(coef=0.3)(
    CreditContext(jnp.array([1.0, 0.0]), traj)
  ).value
  np.testing.assert_array_equal(reward_BT, plain)
  np.testing.assert_array_equal(state['beta'], np.float32(0.3))


@pytest.mark.parametrize(
  'fields',
  [
    {'valid_B': np.array([0.0, 1.0])},
    {'extras': {'logged_B': np.array([1.0, 0.0])}},
  ],
)
def test_rows_that_were_not_judged_or_sampled_do_not_count(toy, fields):
  """The second only: 3 of target 3, no error."""
  piece = shaping.AdaptiveKLInReward(target=3.0, gain=1.0)
  _, state = shaped(toy, piece, **fields)
  np.testing.assert_allclose(state['beta'], 0.1, rtol=1e-6)


def test_without_a_row_that_counts_it_stays(toy):
  piece = shaping.AdaptiveKLInReward(start=0.5, gain=1.0)
  _, state = shaped(toy, piece, valid_B=np.zeros(2))
  assert state['beta'] == 0.5
