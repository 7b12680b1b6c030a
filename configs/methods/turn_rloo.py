"""Turn RLOO: the return of each turn minus that of the others that reached it.

Paper: Ahmadian et al., "Back to Basics: Revisiting REINFORCE-Style
  Optimization for Learning from Human Feedback in LLMs", 2024, for one turn.
Change: against RLOO, A_k = G_k - mean of the other rows' G_k, with the rewards
  from turn k on; a row that is the only one at its turn keeps G_k. Unbiased.
Defaults: gamma 1; sum over tokens, mean over rows. turn_rloo@turn_mean is the
  mean over turns of the mean over their tokens.
Pieces: TurnRewards(); TurnLeaveOneOut(gamma=1.0); Reinforce();
  SeqMeanTokenSum()
Headline: none.
Evidence: reconstructed.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=turn_rloo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'rloo'  # what influence compares it with
VARIANTS = {'turn_mean': ('aggregation=TurnMean()',)}


def get_method() -> Method:
  """Leave-one-out returns of turns with the score-function gradient."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.TurnLeaveOneOut(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
