"""Features of a reward model: two views of a response are most alike."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import at_last_token, masked_mean, safe_divide
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.types import Array

_FAR = -1e30  # of rows that are not compared


@piece
class FeatureContrast(Regularizer):
  """coef mean_i (log sum_j exp(cos(s_i, t_j) / tau) - cos(s_i, t_i) / tau).

  s_i and t_i are the hidden state that predicts the last token of row i, in
  which a share `dropout` of the entries is 0, drawn for each of both; i and j
  are the rows of the minibatch that count. Company of the loss of a reward
  model. Source: the SimCSE term of "Secrets of RLHF Part II: Reward Modeling",
  2024, by secondary sources: reconstructed; there dropout is that of all
  layers, which models here do not have. All constants are ours.
  """

  coef: float = ranged(0.1, 0.0)
  tau: float = ranged(0.1, 0.0, open_low=True)
  dropout: float = ranged(0.1, 0.0, 1.0, open_high=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  needs = ('hidden',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    live_B = (row_weight(traj) > 0).astype(jnp.float32)
    last_BT = at_last_token(jnp.ones_like(live_B), traj.mask_BT)
    state_BD = (ctx.stats['hidden'] * last_BT[:, :, None]).sum(1)
    size = state_BD.shape[1]
    uniform_BU = randomness.row_token_uniform(ctx.key, traj.row_id_B2, 2 * size)
    first_BD, second_BD = (
      _unit(jnp.where(uniform < self.dropout, 0.0, state_BD))
      for uniform in jnp.split(uniform_BU, 2, axis=1)
    )
    near_BB = first_BD @ second_BD.T
    logit_BB = jnp.where(live_B[None] > 0, near_BB / self.tau, _FAR)
    own_B = jnp.diagonal(jax.nn.log_softmax(logit_BB, axis=1))
    loss = -masked_mean(jnp.where(live_B > 0, own_B, 0.0), live_B)
    near = masked_mean(jnp.diagonal(near_BB), live_B)
    return LossOut(self.coef * loss, {'preference/views_cosine': near})


def _unit(x_BD: Array) -> Array:
  """Rows of length 1; 0 stays."""
  square_B1 = (x_BD**2).sum(1, keepdims=True)
  return safe_divide(x_BD, jnp.sqrt(jnp.where(square_B1 > 0, square_B1, 1.0)))
