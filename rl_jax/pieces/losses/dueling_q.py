"""B-Coder: the policy's logits and a value head as one action value."""

from typing import Any, ClassVar

import chex

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.statistics.greedy_gap import GreedyGap
from rl_jax.types import Array, Metrics, Trajectories

_DRAWN = GreedyGap()


@piece
class DuelingQ:
  """l_t = (Q_t - ret_t)^2 + d (advantage_coef |A_t| - likelihood_coef logp_t).

    Q_t = V_t + A_t,   A_t = alpha (logp_t - max_v log pi(v)) <= 0

  so softmax(Q / alpha) is the policy, whatever V is. d is 1 on right rows from
  data (reward above 0), which are to be greedy and likely, else 0.
  Source: "B-Coder: Value-Based Deep Reinforcement Learning for Program
  Synthesis", sections 4 and 5, from the text; coefficients are ours. There V
  alone is trained first, and a residual of V later.
  """

  alpha: float = ranged(1.0, 0.0, open_low=True)  # reward per nat
  advantage_coef: float = ranged(0.1, 0.0)
  likelihood_coef: float = ranged(0.5, 0.0)
  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'policy'
  per_token: ClassVar[bool] = True
  needs: ClassVar[tuple] = ('values', _DRAWN)

  def check_method(self, method) -> None:
    """Raises ValueError if nothing computes the targets."""
    if method.value_target is None:
      raise ValueError(
        'DuelingQ needs method.value_target: for example ConservativeTarget()'
      )

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del key
    value_BT, gap_BT, logp_BT = (
      stats['values'],
      stats[_DRAWN.name],
      stats['logp'],
    )
    chex.assert_equal_shape([value_BT, gap_BT, traj.returns_BT, traj.mask_BT])
    advantage_BT = self.alpha * gap_BT
    error_BT = (value_BT + advantage_BT - traj.returns_BT) ** 2
    shown_B = (1.0 - row_inputs.sampled_B(traj)) * (traj.reward_B > 0)
    imitation_BT = -self.advantage_coef * advantage_BT
    imitation_BT -= self.likelihood_coef * logp_BT
    return error_BT + shown_B[:, None] * imitation_BT, {
      'value/error': error_BT,
      'value/mean': value_BT,
      'policy/greedy_gap': gap_BT,
    }
