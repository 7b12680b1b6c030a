"""Scores of a row by its likelihood, without a reference, [B].

S is the sum of logp over the row's trained tokens and T their number, in nats
and float32; no reference is read. The gradient reaches logp.
"""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_sum, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, Score
from rl_jax.types import Array, Trajectories

_LARGEST_EXPONENT = 80.0  # exp(80) is below the float32 maximum
_CERTAIN = -1e-6  # mean log-prob from which on the odds are held


def _mean_logp(stats: dict[str, Array], traj: Trajectories):
  total_B = masked_sum(stats['logp'], traj.mask_BT, axis=1)
  return safe_divide(total_B, traj.mask_BT.sum(1))


@piece
class SumLogp(Score):
  """s = beta S: no reference. Source: CPO; SLiC with beta 1."""

  beta: float = ranged(0.1, 0.0, open_low=True)

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    return self.beta * masked_sum(ctx.stats['logp'], ctx.traj.mask_BT, axis=1)


@piece
class MeanLogp(Score):
  """s = beta S / T: no reference, lengths do not count.

  With alpha > 0 the mean a = S / T becomes (1 - exp(-alpha a)) / alpha
  (AlphaPO). Source: princeton-nlp/SimPO simpo_trainer.py, by a digest.
  """

  beta: float = ranged(2.0, 0.0, open_low=True)
  alpha: float | None = ranged(None, 0.0, open_low=True)

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    mean_B = _mean_logp(ctx.stats, ctx.traj)
    if self.alpha is not None:
      exponent_B = jnp.minimum(-self.alpha * mean_B, _LARGEST_EXPONENT)
      mean_B = -jnp.expm1(exponent_B) / self.alpha
    return self.beta * mean_B


@piece
class LogOdds(Score):
  """s = a - log(1 - exp(a)), a = S / T, held at a = -1e-6.

  Source: ORPO (xfactlab/orpo orpo_trainer.py, by a digest), with a stable
  log(1 - exp(a)).
  """

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    mean_B = _mean_logp(ctx.stats, ctx.traj)
    mean_B = jnp.where(mean_B < _CERTAIN, mean_B, _CERTAIN)
    near_B = mean_B > -jnp.log(2.0)
    # Each form where it is exact; the double where keeps gradients finite.
    small_B = jnp.log(-jnp.expm1(jnp.where(near_B, mean_B, -1.0)))
    large_B = jnp.log1p(-jnp.exp(jnp.where(near_B, -1.0, mean_B)))
    return mean_B - jnp.where(near_B, small_B, large_B)
