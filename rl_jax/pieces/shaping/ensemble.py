"""Several reward models as one, less a penalty where they disagree."""

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import static


@piece
class Ensemble(Shaping):
  """R = mean_k r_k - coef var_k r_k, or by kind='worst' min_k r_k.

  The variance is that of the K components (ddof 0); coef 0 is their mean.
  Source: Coste et al., "Reward Model Ensembles Help Mitigate
  Overoptimization", 2023; tlc4418/llm_optimization src/reward_modeling/scoring/
  ppo_reward_functions.py (mean, UWO, WCO), where the variance has ddof 1.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  kind: str = chosen('uncertainty', ('uncertainty', 'worst'))
  coef: float = ranged(0.5, 0.0)  # per unit of reward

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_KB = row_inputs.components(self, ctx.traj)
    if self.kind == 'worst':
      return CreditOut(reward_KB.min(0))
    return CreditOut(reward_KB.mean(0) - self.coef * reward_KB.var(0))
