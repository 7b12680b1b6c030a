"""Token rewards of a DPO policy."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.shaping import ImplicitReward, KLInReward
from rl_jax.pieces.statistics import Chunk, PolicyLogp

# Against the reference: the DPO policy's log-ratios, the policy's own.
IMPLIED = np.array([[2.0, -0.4, 0.6, 9.0]])
OWN = np.array([[0.5, 0.1, -0.2, 9.0]])


def rows(toy):
  """One response of three tokens with reward 1."""
  return toy.trajectories(
    [[1, 1, 1, 0]],
    group_size=1,
    reward_B=np.ones(1),
    logp_ref_BT=np.full((1, 4), -1.0),
    logp_old_BT=OWN - 1.0,
    extras={'logp_implied': IMPLIED - 1.0},
  )


def test_by_hand(toy):
  """RTO: clip(0.05 * 2) - 0.01 * 0.5, and so on; the reward at the end."""
  traj = rows(toy)
  reward = KLInReward(coef=0.01)(CreditContext(traj.reward_B, traj)).value
  found = ImplicitReward()(CreditContext(reward, traj)).value
  np.testing.assert_allclose(found, [[0.045, -0.021, 1.032, 0]], atol=1e-6)


def test_sums_are_the_reward_of_dpo(toy):
  """beta times the log-ratio of the whole response; 0 without a coefficient."""
  traj = rows(toy)
  found = ImplicitReward(coef=0.1, clip=None)(
    CreditContext(0.0 * traj.reward_B, traj)
  ).value
  np.testing.assert_allclose(found.sum(), 0.1 * 2.2, rtol=1e-6)
  none = ImplicitReward(coef=0.0)(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_array_equal(none, [[0, 0, 1.0, 0]])


def test_statistic_is_the_log_probability_of_the_other_policy():
  """The log-probability of token 1; logits may lack any constant."""
  own, other = jnp.zeros((1, 1, 2)), jnp.log(jnp.array([[[0.75, 0.25]]])) + 3
  chunk = Chunk(
    logits_BCV=own,
    token_BC=jnp.ones((1, 1), jnp.int32),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={'dpo': other},
  )
  found = PolicyLogp('dpo')(chunk)
  np.testing.assert_allclose(found, [[np.log(0.25)]], rtol=1e-6)
