"""DeGRPO (Thinkless): the control token has its own mean.

Paper: Fang et al., "Thinkless: LLM Learns When to Think", 2025.
Change: against GRPO, the loss of the first token, which chooses the mode, is
  averaged over rows and weighted by alpha, that of the other tokens over
  tokens; no std; a right response earns 1 in the instant mode and 0.5 in
  others, a wrong one -1. Needs a task that returns `mode`.
Defaults: alpha 1e-3, clip 0.2, KL 1e-3 (k3) over tokens (script).
Pieces: ModeRewards(instant=1.0, thought=0.5, wrong=-1.0, correct_above=0.5);
  GroupCenter(); PPOClip(clip_low=0.2, clip_high=0.2);
  KLPenalty(coef=0.001, estimator='k3', aggregation=TokenMean());
  ControlSplit(coef=0.001)
Headline: 50 to 90% fewer long chains on Minerva Algebra, MATH-500 and GSM8K.
Evidence: verified in code (VainF/Thinkless core_algos.py).
Paper and code: the paper averages the other tokens per row, the code over the
  batch; the code is followed.
Command: python -m experiments.train --config=configs/worlds/modes.py
  --method=degrpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.control_split import ControlSplit

# 1e-3 is one over the length of responses of a thousand tokens; this is of 20.
VARIANTS = {'short_responses': ('aggregation.coef=0.05',)}


def get_method() -> Method:
  """Centred rewards of modes, control and response averaged apart."""
  return Method(
    shaping=(shaping.ModeRewards(),),
    credit=(credit.GroupCenter(),),
    losses=(
      losses.PPOClip(),
      regularizers.KLPenalty(coef=1e-3, aggregation=TokenMean()),
    ),
    aggregation=ControlSplit(coef=1e-3),
  )
