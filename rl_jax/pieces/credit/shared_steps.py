"""SALT: a step that several episodes share has the mean of their advantages."""

from jax import lax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array

_END = -2  # the state after the last turn


@piece
class SharedSteps(Credit):
  """A of turn k = mean of A over the turns of the group that are the same step.

  A step is (state, action, next state), and with history = h the h steps before
  it are the same, too. Turns of unknown state or action are shared by none.
  After their last turns all episodes are in one state, however they ended.
  Source: "SALT: Step-level Advantage Assignment for Long-horizon Agents via
  Trajectory Graph"; reconstructed from the abstract.
  """

  history: int = ranged(0, 0, static=True)
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    view, size = turn_view(traj), traj.group_size
    live_BK = view.played_BK * (traj.valid_B > 0)[:, None]
    after_BK = jnp.pad(view.state_BK[:, 1:], ((0, 0), (0, 1)))
    more_BK = jnp.pad(view.played_BK[:, 1:], ((0, 0), (0, 1)))
    after_BK = jnp.where(more_BK > 0, after_BK, _END)
    step_BK3 = jnp.stack([view.state_BK, view.action_BK, after_BK], axis=-1)
    credit_BK = jnp.broadcast_to(credit_B[:, None], live_BK.shape)
    groups = [by_group(x, size) for x in (step_BK3, live_BK, credit_BK)]
    # One group at a time: every turn is compared with every other.
    shared_NGK = lax.map(lambda group: self._shared(*group), tuple(groups))
    return CreditOut(view.on_tokens(ungroup(shared_NGK)))

  def _shared(self, step_GK3: Array, live_GK: Array, credit_GK: Array):
    """Means of one group."""
    G, K = live_GK.shape
    known_GK = (live_GK > 0) & (step_GK3[..., :2] >= 0).all(axis=-1)
    known_GK &= step_GK3[..., 2] != -1
    known_S, step_S3 = known_GK.ravel(), step_GK3.reshape(G * K, 3)
    same_SS = (step_S3[:, None] == step_S3[None]).all(axis=-1)
    one_SS = same_SS = same_SS & known_S[:, None] & known_S[None]
    for back in range(1, self.history + 1):
      same_SS = same_SS & _before(one_SS, (G, K), back)
    itself_SS = jnp.eye(G * K, dtype=bool)
    same_SS = (same_SS | itself_SS).astype(jnp.float32)
    same_SS = same_SS * live_GK.ravel()[None]
    mean_S = safe_divide(same_SS @ credit_GK.ravel(), same_SS.sum(axis=1))
    return mean_S.reshape(G, K)


def _before(same_SS: Array, shape: tuple[int, int], back: int) -> Array:
  """Returns whether the steps `back` turns earlier are the same, or both are
  none.
  """
  G, K = shape
  x = same_SS.reshape(G, K, G, K)
  x = jnp.pad(x, ((0, 0), (back, 0), (0, 0), (back, 0)))[:, :K, :, :K]
  none_K = jnp.arange(K) < back
  both = none_K[:, None] & none_K[None]
  return (x | both[None, :, None, :]).reshape(G * K, G * K)
