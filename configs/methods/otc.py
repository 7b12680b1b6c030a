"""OTC-GRPO: the reward is multiplied by how few tool calls were made.

Paper: Wang et al., "OTC: Optimal Tool Calls via Reinforcement Learning", 2025.
Change: against GRPO, the reward has a factor in [0, 1] that is 1 at the fewest
  calls with which a row of the group was right.
Defaults: alpha 1, smoothing 1 (not in the text that was read); KL and clip of
  GRPO. ToolCost.compared=False is OTC-PPO's factor.
Pieces: ToolCost(alpha=1.0, smoothing=1.0, correct_above=0.5, compared=True);
  GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean()
Headline: up to 73% fewer calls at similar accuracy (paper).
Evidence: reconstructed from the text; no code was found.
Command: python -m experiments.train --config=configs/worlds/priced_tools.py
  --method=otc
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo'  # what influence compares it with


def get_method() -> Method:
  """GRPO on rewards that shrink with tool calls."""
  return Method(
    shaping=(shaping.ToolCost(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
