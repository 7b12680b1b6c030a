"""Token rewards that a DPO policy implies."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Loaded
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.pieces.statistics.policy_logp import PolicyLogp
from rl_jax.types import static

_LOGP = PolicyLogp('implied')


@piece
class ImplicitReward(Shaping):
  """r_t + clip(coef (logp_implied - logp_ref)_t, +-clip) on policy tokens.

  logp_implied is that of a policy on disk, trained by DPO from the reference;
  the sum over a response is coef log(pi_implied / pi_ref), DPO's reward of the
  whole response for coef = beta. No gradient. The outcome stays on the last
  trained token.
  Source: RTO, "DPO Meets PPO: Reinforced Token Optimization for RLHF";
  zkshan2002/RTO experience_maker.py (by a digest; the clip is only there).
  """

  path: str = static(default='runs/dpo')  # work or model directory
  coef: float = ranged(0.05, 0.0)  # reward per nat
  clip: float | None = ranged(0.05, 0.0, open_low=True)  # None: off
  needs = ('logp_ref', _LOGP)

  @property
  def policies(self) -> dict[str, Any]:
    """Returns where the policy comes from."""
    return {_LOGP.policy: Loaded(path=self.path)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    ratio_BT = traj.extras[_LOGP.name] - traj.logp_ref_BT
    implied_BT = jnp.where(traj.mask_BT > 0, self.coef * ratio_BT, 0.0)
    if self.clip is not None:
      implied_BT = jnp.clip(implied_BT, -self.clip, self.clip)
    return CreditOut(on_tokens(reward, traj.mask_BT) + implied_BT)
