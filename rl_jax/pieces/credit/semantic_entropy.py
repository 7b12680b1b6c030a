"""SEED-GRPO: small updates where the answers of a prompt disagree."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.clusters import answer_entropy, cluster_mass, same_answer
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  safe_divide,
  ungroup,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, Trajectories


@piece
class SemanticEntropyScale(Credit):
  """A_k * f(alpha H / log n): n valid rows, H the entropy of their answers.

    P(C) = sum of exp(mean_t logp_old) in cluster C, as a share of the group
    H = -sum_C P(C) log P(C)                     estimator 'likelihood'
    P(C) = rows in C / n                         estimator 'count'
    H = -mean over clusters of log P(C)          estimator 'monte_carlo'
    f(z) = 1 / (1 + z), 1 - z or exp(-z)

  No gradient. Reads extras['cluster_id_B']; a row without an answer is its own
  cluster.
  Source: "SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware
  Policy Optimization", from a review and the maxent_grpo code, which has
  1 / (1 + z) and 'likelihood'.
  """

  alpha: float = ranged(0.0417, 0.0)
  estimator: str = chosen('likelihood', ('likelihood', 'count', 'monte_carlo'))
  scale: str = chosen('reciprocal', ('reciprocal', 'linear', 'exponential'))
  needs = ('logp',)
  min_group_size = 2

  def _entropy(self, traj: Trajectories) -> Array:
    """Entropy of the answers of every prompt, in nats, [N]."""
    same_NGG, _ = same_answer(traj, merge_missing=False)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    mass_NG = valid_NG
    if self.estimator != 'count':
      logp_B = masked_mean(traj.logp_old_BT, traj.mask_BT, axis=1)
      mass_NG = valid_NG * by_group(jnp.exp(logp_B), traj.group_size)
    share_NG, cluster_NG = cluster_mass(mass_NG, same_NGG)
    if self.estimator == 'monte_carlo':
      # Every row stands for its cluster with weight 1 / size.
      share_NG = safe_divide(valid_NG, same_NGG.sum(2))
      share_NG = safe_divide(share_NG, share_NG.sum(1, keepdims=True))
    return answer_entropy(share_NG, cluster_NG)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    count_N = by_group(traj.valid_B, traj.group_size).sum(1)
    limit_N = jnp.log(jnp.maximum(count_N, 1.0))
    z_N = self.alpha * safe_divide(self._entropy(traj), limit_N)
    factor_N = {
      'reciprocal': 1.0 / (1.0 + z_N),
      'linear': 1.0 - z_N,
      'exponential': jnp.exp(-z_N),
    }[self.scale]
    credit_NG = by_group(credit_B, traj.group_size)
    return CreditOut(ungroup(credit_NG * factor_N[:, None]))
