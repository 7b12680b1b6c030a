"""B-Coder: the policy's logits and a value head as one action value."""

from typing import Any

import chex
import jax

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.pieces.statistics.greedy_gap import GreedyGap
from rl_jax.types import Array

_DRAWN = GreedyGap()
STAGES = ('values', 'residual', 'joint')


@piece
class DuelingQ(Loss):
  """l_t = (Q_t - ret_t)^2 + d (advantage_coef |A_t| - likelihood_coef logp_t).

    Q_t = V_t + A_t,   A_t = alpha (logp_t - max_v log pi(v)) <= 0

  so softmax(Q / alpha) is the policy, whatever V is. d is 1 on right rows from
  data (reward above 0), which are to be greedy and likely, else 0. Stages, with
  V_1, V_2 the outputs of the value head:
    values: V = V_1 + V_2, all but V_1 without gradient, d = 0 (stage 1);
    residual: V = V_1 + V_2, V_1 without gradient (stage 2). V_2 starts at 0,
      and with model.critic=residual V_1 has separate layers, which stay;
    joint: V = V_1, trained with the logits from the start; not of the paper.
  Source: "B-Coder: Value-Based Deep Reinforcement Learning for Program
  Synthesis", sections 4 and 5, from the text; coefficients are ours.
  """

  stage: str = chosen('joint', STAGES)
  alpha: float = ranged(1.0, 0.0, open_low=True)  # reward per nat
  advantage_coef: float = ranged(0.1, 0.0)
  likelihood_coef: float = ranged(0.5, 0.0)
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('value_heads', _DRAWN)
  off_policy = True

  @property
  def num_values(self) -> int:
    """V_1, and V_2 but in the stage 'joint'."""
    return 1 if self.stage == 'joint' else 2

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if nothing computes the targets."""
    method = context.method
    if method.value_target is None:
      raise ValueError(
        'DuelingQ needs method.value_target: for example ConservativeTarget()'
      )

  @property
  def offers(self) -> dict[str, Any]:
    """Returns how Q is made of the value head, for ConservativeTarget."""
    return {'dueling_q': {'alpha': self.alpha, 'num_summed': self.num_values}}

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats, traj = ctx.stats, ctx.traj
    value_BT, advantage_BT, logp_BT = self._parts(stats)
    chex.assert_equal_shape(
      [value_BT, advantage_BT, traj.returns_BT, traj.mask_BT]
    )
    error_BT = (value_BT + advantage_BT - traj.returns_BT) ** 2
    shown_B = (1.0 - row_inputs.sampled_B(traj)) * (traj.reward_B > 0)
    imitation_BT = -self.advantage_coef * advantage_BT
    imitation_BT -= self.likelihood_coef * logp_BT
    if self.stage == 'values':
      shown_B *= 0.0
    return LossOut(
      error_BT + shown_B[:, None] * imitation_BT,
      {
        'value/error': error_BT,
        'value/mean': value_BT,
        'policy/greedy_gap': stats[_DRAWN.name],
      },
    )

  def _parts(self, stats: dict[str, Array]):
    """(V, A, logp), what the stage does not train without gradient."""
    fixed = jax.lax.stop_gradient
    heads_BTH = stats['value_heads']
    value_BT, logits = heads_BTH[..., 0], (stats[_DRAWN.name], stats['logp'])
    if self.stage == 'values':
      value_BT, logits = value_BT + fixed(heads_BTH[..., 1]), fixed(logits)
    elif self.stage == 'residual':
      value_BT = fixed(value_BT) + heads_BTH[..., 1]
    gap_BT, logp_BT = logits
    return value_BT, self.alpha * gap_BT, logp_BT
