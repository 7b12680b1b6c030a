"""Scores of a row against the reference, [B].

S is the sum of logp over the row's trained tokens, S_ref that of logp_ref, T
their number, D = S - S_ref, all in nats and float32. The gradient reaches logp.
"""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import by_group, masked_sum, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, Score
from rl_jax.types import Array, Trajectories

_REFERENCE = ('logp_ref',)
_LARGEST_EXPONENT = 80.0  # exp(80) is below the float32 maximum


def _log_ratio_sum(
  stats: dict[str, Array], traj: Trajectories, weight_BT: Array
):
  difference_BT = stats['logp'] - traj.logp_ref_BT
  return masked_sum(difference_BT, weight_BT, axis=1)


@piece
class LogRatio(Score):
  """s = beta D, or beta D / T by length='mean'.

  Source: DPO; the mean is Tulu 3's length-normalised DPO (open-instruct
  dpo_utils.py, by a digest of the code).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)  # per nat
  length: str = chosen('sum', ('sum', 'mean'))
  needs = _REFERENCE

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    traj = ctx.traj
    total_B = _log_ratio_sum(ctx.stats, traj, traj.mask_BT)
    if self.length == 'mean':
      total_B = safe_divide(total_B, traj.mask_BT.sum(1))
    return self.beta * total_B


@piece
class DivergenceRatio(Score):
  """s = beta g(D): DPO under another divergence than the reverse KL.

    'reverse_kl' D   'forward_kl' -exp(-D)   'js' log sigmoid(D)
    'alpha' exp((alpha - 1) D) / (alpha - 1)

  By length='mean' s = beta g(D) / T: g is that of the sum, as IPO and the
  length-normalised DPO have it. Exponents stop at 80. Source: f-DPO as in TRL
  dpo_trainer.py (by a digest).
  """

  divergence: str = chosen('js', ('reverse_kl', 'forward_kl', 'js', 'alpha'))
  beta: float = ranged(0.1, 0.0, open_low=True)
  alpha: float = ranged(0.5, 0.0, 1.0, open_high=True)  # only for 'alpha'
  length: str = chosen('sum', ('sum', 'mean'))
  needs = _REFERENCE

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    traj = ctx.traj
    ratio_B = _log_ratio_sum(ctx.stats, traj, traj.mask_BT)
    if self.divergence == 'forward_kl':
      ratio_B = -jnp.exp(jnp.minimum(-ratio_B, _LARGEST_EXPONENT))
    elif self.divergence == 'js':
      ratio_B = -jnp.logaddexp(0.0, -ratio_B)
    elif self.divergence == 'alpha':
      power = self.alpha - 1.0
      exponent_B = jnp.minimum(power * ratio_B, _LARGEST_EXPONENT)
      ratio_B = jnp.exp(exponent_B) / power
    if self.length == 'mean':
      ratio_B = safe_divide(ratio_B, traj.mask_BT.sum(1))
    return self.beta * ratio_B


@piece
class CommonLengthRatio(Score):
  """s = beta sum_t w_t (logp_t - logp_ref_t), w = 1, and alpha beyond L.

  L is the number of trained tokens of the shortest trained row of the group:
  of a pair that of its shorter row. alpha 1 is DPO.
  Source: LD-DPO, "Length Desensitization in Direct Preference Optimization", as
  in TRL dpo_trainer.py (by a digest).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  alpha: float = ranged(0.5, 0.0, 1.0)
  needs = _REFERENCE

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    traj = ctx.traj
    place_BT = jnp.cumsum(traj.mask_BT, axis=1)
    tokens_B = traj.mask_BT.sum(1)
    live_B = (traj.weight_B * traj.valid_B != 0) & (tokens_B > 0)
    tokens_NG = by_group(jnp.where(live_B, tokens_B, jnp.inf), traj.group_size)
    common_B = jnp.repeat(tokens_NG.min(1), traj.group_size)
    weight_BT = jnp.where(place_BT <= common_B[:, None], 1.0, self.alpha)
    difference_BT = ctx.stats['logp'] - traj.logp_ref_BT
    total_B = masked_sum(difference_BT * weight_BT, traj.mask_BT, axis=1)
    return self.beta * total_B
