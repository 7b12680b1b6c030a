"""GUI-G1: no std, a constant length, and harder prompts weigh more.

Paper: Zhou et al., "GUI-G1: Understanding R1-Zero-Like Training for Visual
  Grounding in GUI Agents", 2025.
Change: against Dr. GRPO, the loss of a prompt is multiplied by its difficulty.
  Needs extras['difficulty_B'] (see rl_jax/pieces/row_inputs.py).
Defaults: length 64, clip 0.2, no KL (run.sh).
Pieces: GroupCenter(); PPOClip(clip_low=0.2, clip_high=0.2); DifficultyWeight();
  SeqMeanTokenSumNorm(length=64.0)
Headline: 3B: ScreenSpot 90.3, ScreenSpot-Pro 37.1.
Evidence: verified in code (Yuqi-Zhou/GUI-G1 grpo_trainer.py).
Paper and code: the paper takes the weight from the relative size of the target
  box, the code from a precomputed column; that of worlds.Boxes is ours. Its
  rewards, hit + IoU / 4 + edges / 8, are weighted so in
  configs/worlds/boxes.py.
Command: python -m experiments.train --config=configs/worlds/boxes.py
  --method=gui_g1
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm

BASELINE = 'dr_grpo'  # what influence compares it with


def get_method() -> Method:
  """Dr. GRPO with difficulty weights."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.PPOClip(),),
    weights=(weights.DifficultyWeight(),),
    aggregation=SeqMeanTokenSumNorm(length=64.0),
  )
