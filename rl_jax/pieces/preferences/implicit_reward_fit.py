"""Supervised training as reward learning, under several divergences."""

import math
from typing import Any

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.edges import edge_mean
from rl_jax.pieces.ops.masking import masked_sum
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut

# phi and its derivative; both 1 in slope at 0.
_LINKS = {
  'linear': (lambda x: x, lambda x: 1.0),
  'chi2': (lambda x: x - x**2 / 4, lambda x: 1 - x / 2),
  'hellinger': (lambda x: x / (1 + x), lambda x: 1 / (1 + x) ** 2),
  'js': (
    lambda x: jnp.log(2 - jnp.exp(-x)),
    lambda x: math.exp(-x) / (2 - math.exp(-x)),
  ),
}
_FLOOR = -0.5  # above the poles of 'hellinger' (-1) and 'js' (-log 2)


@piece
class ImplicitRewardFit(Loss):
  """L = -mean over rows of phi(r), r = beta D the implicit reward of the row.

    'linear' r (total variation)      'chi2' r - r^2 / 4
    'hellinger' r / (1 + r)           'js' log(2 - exp(-r))

  D is the sum of logp - logp_ref over the row's trained tokens. Every row is
  imitated, whatever its label. All have slope 1 at the reference; below
  r = -1/2 'hellinger' and 'js' continue as straight lines. 'linear' is
  supervised training (by sums of rows, times beta): its gradient does not know
  the reference.
  Source: "Implicit Reward as the Bridge: A Unified View of SFT and DPO
  Connections" (f-divergence SFT; reconstructed).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  divergence: str = chosen('chi2', tuple(_LINKS))
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  from_data = True
  imitates = True  # every response, whatever its label
  needs = ('logp_ref',)
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    ratio_B = masked_sum(
      ctx.stats['logp'] - traj.logp_ref_BT, traj.mask_BT, axis=1
    )
    reward_B = self.beta * ratio_B
    phi, slope = _LINKS[self.divergence]
    value_B = phi(reward_B)
    if self.divergence in ('hellinger', 'js'):
      held_B = jnp.maximum(reward_B, _FLOOR)
      below_B = jnp.where(reward_B < _FLOOR, reward_B - _FLOOR, 0.0)
      value_B = phi(held_B) + slope(_FLOOR) * below_B
    weight_B = row_weight(traj)
    return LossOut(
      -edge_mean(value_B, weight_B),
      {'preference/implicit_reward': edge_mean(reward_B, weight_B)},
    )
