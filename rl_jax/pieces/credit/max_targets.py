"""Q-learning: one-step targets by the best action of a target copy."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens, zero_masked
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import CreditContext, CreditOut, ValueTarget
from rl_jax.pieces.statistics.action_values import ActionValues, BestActionValue

_TARGETS = 'targets'


@piece
class MaxTargets(ValueTarget):
  """ret_t = r_t + gamma max_v min(Q_1, Q_2)(s', v), of a target copy.

  s' is what the policy faces at its next trained token; after the last one the
  maximum is 0. It is over tokens that the policy that samples draws with at
  least so many percent of the probability of the likeliest: 0 is Q-learning,
  which trusts values of untried tokens, 100 the value of the likeliest token.
  The copy is a moving average of the weights. A reward [B] is placed on the
  last trained token.
  Source: Gur et al., "Learning to Navigate the Web" (a target network), where
  only actions of the page can be taken; the bound is that of discrete BCQ,
  Fujimoto et al., "Benchmarking Batch Deep Reinforcement Learning Algorithms".
  """

  gamma: float = ranged(0.99, 0.0, 1.0)  # discount per token
  least_percent: int = ranged(0, 0, 100, static=True)
  decay: float = ranged(0.9, 0.0, 1.0)  # of the copy, an iteration

  @property
  def needs(self) -> tuple[Any, ...]:
    """The best value under the copy; the policy has Q, too."""
    return ActionValues(), self._best

  @property
  def _best(self):
    return BestActionValue(self.least_percent, policy=_TARGETS)

  @property
  def policies(self) -> dict[str, Any]:
    """The target copy."""
    return {_TARGETS: Average(decay=self.decay)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> targets [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    reward_BT = on_tokens(reward, traj.mask_BT)
    best_BT = row_inputs.read(traj, self._best.name)
    next_BT = next_kept(zero_masked(best_BT, traj.mask_BT), traj.mask_BT)
    return CreditOut(
      zero_masked(reward_BT + self.gamma * next_BT, traj.mask_BT)
    )
