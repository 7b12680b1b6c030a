"""DID: how sharp the change from the reference to the policy is."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_sum,
  safe_divide,
)
from rl_jax.pieces.ops.sequences import mean_over_groups, row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.types import Array


@piece
class DifferentialInformation(Regularizer):
  """Loss 0; measures the entropy of q(y) = (pi(y) / ref(y)) / sum_y pi / ref.

    H(q) ~ -sum_k w_k (D_k - log mean_j 1 / ref(y_j)),  w_k ~ 1 / ref(y_k)

  over the rows that a prompt's group has sampled from pi, the sampling policy;
  D = S - S_ref of whole rows. Low: the preferences reinforce few responses;
  high, at most the log of the number of responses: they smooth, and the
  likelihoods of chosen and rejected fall. The variance is very high: read it
  with preference/did_samples = 1 / sum_k w_k^2, the effective number of rows.
  Groups with fewer than two such rows count nowhere.
  Source: "Differential Information Distribution" of "Differential Information:
  An Information-Theoretic Perspective on Preference Optimization" (q and its
  entropy by secondary sources; the self-normalised estimate is ours).
  """

  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  needs = ('logp_ref',)
  min_group_size = 2

  def __call__(self, ctx: LossContext) -> LossOut:
    """The scalar 0."""
    traj = ctx.traj
    mask_BT = traj.mask_BT
    sum_B = masked_sum(traj.logp_behaviour_BT, mask_BT, axis=1)
    ref_B = masked_sum(traj.logp_ref_BT, mask_BT, axis=1)
    live_B = (row_weight(traj) * row_inputs.sampled_B(traj)) != 0
    sum_NG, ref_NG, live_NG = (
      by_group(x, traj.group_size)
      for x in (sum_B, ref_B, live_B.astype(jnp.float32))
    )
    count_N1 = live_NG.sum(1, keepdims=True)
    live_NG = live_NG * (count_N1 > 1)
    entropy_N, samples_N = _entropy(sum_NG, ref_NG, live_NG)
    return LossOut(
      jnp.float32(0.0),
      {
        'preference/did_entropy': mean_over_groups(entropy_N, live_NG.ravel()),
        'preference/did_samples': mean_over_groups(samples_N, live_NG.ravel()),
      },
    )


def _entropy(sum_NG: Array, ref_NG: Array, live_NG: Array):
  """(entropy of q, effective number of rows), [N]; in logarithms."""
  kept_NG, count_N1 = live_NG > 0, live_NG.sum(1, keepdims=True)
  inverse_NG = jnp.where(kept_NG, -ref_NG, -jnp.inf)
  total_N1 = jax.nn.logsumexp(inverse_NG, axis=1, keepdims=True)
  total_N1 = jnp.where(count_N1 > 0, total_N1, 0.0)
  weight_NG = jnp.exp(inverse_NG - total_N1)
  log_mean_N1 = total_N1 - jnp.log(jnp.maximum(count_N1, 1.0))
  surprise_NG = log_mean_N1 - (sum_NG - ref_NG)
  samples_N = safe_divide(jnp.float32(1.0), (weight_NG**2).sum(1))
  return masked_sum(weight_NG * surprise_NG, live_NG, axis=1), samples_N
