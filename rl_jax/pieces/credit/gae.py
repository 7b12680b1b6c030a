"""Generalised advantage estimation and the value targets that go with it."""

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.returns import lambda_advantage, next_kept, value_targets
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.types import Array, Trajectories


def _advantage(
  reward: Array, traj: Trajectories, gamma: float, lam: float
) -> Array:
  """The recurrence of GAE over trained tokens; other tokens pass through."""
  reward_BT = on_tokens(reward, traj.mask_BT)
  next_BT = next_kept(traj.values_BT, traj.mask_BT)
  return lambda_advantage(reward_BT, next_BT, traj, gamma, lam)


@piece
class GAE(Credit):
  """A_t = delta_t + gamma lam A_{t+1}, delta_t = r_t + gamma V_{t+1} - V_t.

  V and A after the last token are 0, also for truncated responses. Tokens
  outside the mask are skipped: the value and advantage after them pass through
  undiscounted, and rewards on them are dropped. A reward [B] is placed on the
  last trained token.
  Source: "High-Dimensional Continuous Control Using Generalized Advantage
  Estimation"; verl core_algos.py (compute_gae_advantage_return).
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per token
  lam: float = ranged(0.95, 0.0, 1.0)  # 0: one-step, 1: Monte Carlo
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    return CreditOut(_advantage(credit, traj, self.gamma, self.lam))


@piece
class LambdaReturn(ValueTarget):
  """Targets of the value head: GAE(gamma, lam) + V, before any whitening.

  lam = 1 and gamma = 1 give the plain return-to-go.
  Source: verl core_algos.py (returns of compute_gae_advantage_return).
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per token
  lam: float = ranged(0.95, 0.0, 1.0)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> returns [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    advantage_BT = _advantage(reward, traj, self.gamma, self.lam)
    return CreditOut(value_targets(advantage_BT, traj))
