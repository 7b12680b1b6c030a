"""AOT: the distribution of margins, not each margin, beats the reference's."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.edges import ends, live_weights
from rl_jax.pieces.ops.masking import masked_mean, masked_sum
from rl_jax.pieces.ops.pair_metrics import pair_metrics
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array


@piece
class SortedPairs(Loss):
  """L = mean over ranks i of -(1 - e) ls(beta d_i) - e ls(-beta d_i).

    'paired'    d = sort(S_win - S_lose) - sort(S_ref_win - S_ref_lose)
    'unpaired'  d = sort(D_win) - sort(D_lose),  D = S - S_ref

  S sums the log-probs of a row. Sorted over all edges of the minibatch that
  count: first-order stochastic dominance of one distribution over the other.
  Weights of edges only say which count.
  Source: AOT, as in TRL dpo_trainer.py (by a digest of the code).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  label_smoothing: float = ranged(0.0, 0.0, 0.5)
  form: str = chosen('paired', ('paired', 'unpaired'))
  aggregation: Any = None  # a scalar loss is not aggregated
  needs = ('logp_ref',)
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    live_NE = live_weights(traj) != 0
    logp_B = masked_sum(ctx.stats['logp'], traj.mask_BT, axis=1)
    ref_B = masked_sum(traj.logp_ref_BT, traj.mask_BT, axis=1)
    win_NE, lose_NE = ends(logp_B, traj.edges)
    ref_win_NE, ref_lose_NE = ends(ref_B, traj.edges)
    if self.form == 'paired':
      high_NE, low_NE = win_NE - lose_NE, ref_win_NE - ref_lose_NE
    else:
      high_NE, low_NE = win_NE - ref_win_NE, lose_NE - ref_lose_NE
    d = _sorted(high_NE, live_NE) - _sorted(low_NE, live_NE)
    # Edges that do not count are sorted to the end.
    counted = (jnp.arange(d.size) < live_NE.sum()).astype(jnp.float32)
    d = jnp.where(counted > 0, self.beta * d, 0.0)
    e, ls = self.label_smoothing, jax.nn.log_sigmoid
    loss = masked_mean(-(1.0 - e) * ls(d) - e * ls(-d), counted)
    win_score_NE = self.beta * (win_NE - ref_win_NE)
    lose_score_NE = self.beta * (lose_NE - ref_lose_NE)
    return LossOut(
      loss, pair_metrics(win_score_NE, lose_score_NE, logp_B, traj)
    )


def _sorted(x_NE: Array, live_NE: Array):
  """All edges in rising order, those that do not count last; finite."""
  x, live = x_NE.ravel(), live_NE.ravel()
  order = jnp.argsort(jnp.where(live, jax.lax.stop_gradient(x), jnp.inf))
  return jnp.where(live, x, 0.0)[order]
