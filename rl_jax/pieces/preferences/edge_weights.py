"""Weights of comparisons, without gradient, [N, E].

They multiply the loss of an edge; means still divide by the number of edges.
"""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.edges import ends
from rl_jax.pieces.ops.masking import masked_mean, masked_sum
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import EdgeWeight, LossContext
from rl_jax.pieces.statistics.collision import Collision
from rl_jax.types import Array, Trajectories


@piece
class OnPolicy(EdgeWeight):
  """w = min(1, exp(m_win + m_lose)), m = mean_t(logp_t - log sum_v p_v^2).

  Pairs that the policy would write itself count more; 1 where each token is as
  likely as a token that the policy draws is on average. Source: WPO, as in TRL
  dpo_trainer.py (use_weighting, limit included, in copies of the file).
  """

  needs = (Collision(),)

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    stats, traj = ctx.stats, ctx.traj
    excess_BT = stats['logp'] - stats[Collision.name]
    win_NE, lose_NE = ends(
      masked_mean(excess_BT, traj.mask_BT, axis=1), traj.edges
    )
    return jnp.minimum(1.0, jnp.exp(win_NE + lose_NE))


def _reward_gap(traj: Trajectories) -> Array:
  """|reward_win - reward_lose|, unshaped and without gradient, [N, E]."""
  win_NE, lose_NE = ends(traj.reward_B, traj.edges)
  return jax.lax.stop_gradient(jnp.abs(win_NE - lose_NE))


@piece
class RewardGap(EdgeWeight):
  """w = |reward_win - reward_lose|^power, of the unshaped rewards.

  power 0 changes nothing. Source: reconstructed (W-DPO's process gap, weighted
  pairs of StepORLM).
  """

  power: float = ranged(1.0, 0.0)

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    gap_NE = _reward_gap(ctx.traj)
    known_NE = gap_NE > 0
    return jnp.where(
      known_NE, jnp.where(known_NE, gap_NE, 1.0) ** self.power, 0
    )


@piece
class Confidence(EdgeWeight):
  """w = 2 sigmoid(|reward_win - reward_lose| / temperature) - 1.

  Where rewards are logits of preferences p (a reward model at temperature 1),
  w = |2 p - 1|: near 1 for sure labels, near 0 for guesses. A small temperature
  gives all edges 1. Of the unshaped rewards. Source: ours.
  """

  temperature: float = ranged(1.0, 0.0, open_low=True)  # units of the reward

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    gap_NE = _reward_gap(ctx.traj)
    return jnp.tanh(0.5 * gap_NE / self.temperature)


@piece
class Importance(EdgeWeight):
  """w = min(limit, exp(m_win + m_lose)), m = sum_t(logp_t - logp_behaviour_t).

  The probability of the pair under the policy over that when it was sampled;
  by length='mean' m is the mean over tokens. 1 at the policy that sampled, and
  on recorded rows in the iteration that reads them. Source: ours.
  """

  limit: float = ranged(2.0, 0.0, open_low=True)
  length: str = chosen('sum', ('sum', 'mean'))

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    traj = ctx.traj
    ratio_BT = ctx.stats['logp'] - traj.logp_behaviour_BT
    reduce = masked_mean if self.length == 'mean' else masked_sum
    sides = ends(reduce(ratio_BT, traj.mask_BT, axis=1), traj.edges)
    total_NE = sides[0] + sides[1]
    # Nothing above the limit is computed, so that nothing overflows.
    return jnp.exp(jnp.minimum(total_NE, jnp.log(self.limit)))
