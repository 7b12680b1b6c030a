"""States of chosen responses lead to their goals, not to those of rejected."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.checks import ranged
from rl_jax.pieces.ops.edges import edge_mean, live_weights
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.types import Array, Trajectories


@piece
class ContrastiveGoal(Regularizer):
  """coef (-log mean sigmoid(cos(s, g+)) - log(1 - mean sigmoid(cos(s, g-)))).

  s, g+ are hidden states of tokens of the winning row of a pair, g- of the
  losing one: `samples` of each, drawn uniformly, s before the g+ of the same
  draw. Means are over all s, all g and the pairs of the minibatch, and the
  logarithm follows. Company of the loss of a reward model.
  Source: goal-conditioned-rm, ContrastiveGoalLoss (by a digest of the code),
  whose sources and goals are also all crossed.
  """

  coef: float = ranged(0.5, 0.0)
  samples: int = ranged(16, 1, static=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2
  needs = ('hidden',)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError without pairs."""
    method = context.method
    if method.pairs is None:
      raise ValueError(
        'method.losses.ContrastiveGoal compares samples: set method.pairs'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    source_BSD, goal_BSD = self._drawn(ctx.stats['hidden'], traj, ctx.key)

    def group(x: Array):
      return by_group(x, traj.group_size)

    source_NGSD, goal_NGSD = group(source_BSD), group(goal_BSD)
    take = jax.vmap(lambda x_GSD, index_E: x_GSD[index_E])
    win_NESD = take(source_NGSD, traj.edges.win_NE)
    weight_NE = live_weights(traj)

    def near(goal_NESD: Array):
      cosine = jnp.einsum('nesd,negd->nesg', win_NESD, goal_NESD)
      return edge_mean(jax.nn.sigmoid(cosine).mean((2, 3)), weight_NE)

    right = near(take(goal_NGSD, traj.edges.win_NE))
    wrong = near(take(goal_NGSD, traj.edges.lose_NE))
    # Without a pair both means are 0, and so is the loss.
    live = (weight_NE != 0).any()
    loss = -jnp.log(jnp.where(live, right, 1.0)) - jnp.log1p(-wrong)
    return LossOut(
      self.coef * loss,
      {
        'preference/goal_chosen': right,
        'preference/goal_rejected': wrong,
      },
    )

  def _drawn(self, hidden_BTD: Array, traj: Trajectories, key: Array):
    """Unit states of sources and goals, each [B, S, D]."""
    count = traj.mask_BT.shape[1]
    uniform_BU = randomness.row_token_uniform(
      key, traj.row_id_B2, 2 * self.samples
    )
    pair_BS2 = jnp.sort(uniform_BU.reshape(-1, self.samples, 2), axis=2)
    size_B = (traj.mask_BT > 0).sum(axis=1)
    # Places among the trained tokens, which may lie between others.
    order_BT = jnp.argsort(traj.mask_BT <= 0, axis=1, stable=True)
    place_BS2 = jnp.floor(pair_BS2 * size_B[:, None, None]).astype(jnp.int32)
    place_BS2 = jnp.clip(place_BS2, 0, count - 1)
    flat_BU = jnp.take_along_axis(
      order_BT, place_BS2.reshape(len(size_B), -1), axis=1
    )
    state_BUD = jnp.take_along_axis(hidden_BTD, flat_BU[:, :, None], axis=1)
    square_BU = (state_BUD**2).sum(axis=2)
    norm_BU = jnp.sqrt(jnp.where(square_BU > 0, square_BU, 1.0))
    unit_BUD = safe_divide(state_BUD, norm_BU[:, :, None])
    unit_BS2D = unit_BUD.reshape(len(size_B), self.samples, 2, -1)
    return unit_BS2D[:, :, 0], unit_BS2D[:, :, 1]
