"""Value targets of each reward component and of the divergence."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces.ops.component_returns import component_advantages
from rl_jax.pieces.ops.masking import zero_masked
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, ValueTarget
from rl_jax.types import static


@piece
class ComponentReturns(ValueTarget):
  """ret_h = GAE(gamma, lam) of component h + V_h; the last h is -(KL)_t.

  Components and constants are those of the method's Lagrangian. The rewards
  of the divergence are -(logp_old - logp_ref)_t, without a coefficient.
  Source: "Confronting Reward Model Overoptimization with Constrained RLHF";
  tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  gamma: float = ranged(0.99, 0.0, 1.0)  # discount per token
  lam: float = ranged(0.95, 0.0, 1.0)
  needs = ('value_heads', 'logp', 'logp_ref')

  @property
  def num_values(self) -> int:
    """One for each component, and one for the divergence."""
    return len(self.components) + 1

  def resolve(self, method: Any) -> 'ComponentReturns':
    """Takes the constants of the method's Lagrangian, if it has one."""
    for one in method.credit:
      if 'component_returns' in one.offers:
        return self.replace(**one.offers['component_returns'])
    return self

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B, T, H]; the combined reward is not read."""
    traj = ctx.traj
    found_BTH = component_advantages(
      self.components, traj, self.gamma, self.lam
    )
    return CreditOut(zero_masked(found_BTH + traj.values_BTH, traj.mask_BT))
