"""AEPO (InfiGUI-G1): one response may offer several ranked answers.

Paper: Liu et al., "InfiGUI-G1: Advancing GUI Grounding with Adaptive
  Exploration Policy Optimization", 2025.
Change: against RLOO, the reward of N candidates of which the k-th is the first
  hit is 1 + 1 / sqrt(N k), and 1 - 1 / N without a hit. Needs
  extras['num_answers_B'] and ['hit_rank_B'] (see rl_jax/pieces/row_inputs.py).
Defaults: leave-one-out baseline, clip 0.2/0.4, no KL (run_3b.sh).
Pieces: RankedAnswers(format=1.0); LeaveOneOut(); PPOClip(clip_low=0.2,
  clip_high=0.4); TokenMean()
Headline: up to 9% relative gain over RLVR on GUI grounding.
Evidence: verified in code (InfiXAI/InfiGUI-G1 reward_fn.py).
Paper and code: an empty list is well formed in the code and scores 0.
Command: python -m experiments.train --config=configs/worlds/points.py
  --method=aepo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'rloo'  # what influence compares it with


def get_method() -> Method:
  """Leave-one-out advantages of the ranked-answer reward."""
  return Method(
    shaping=(shaping.RankedAnswers(),),
    credit=(credit.LeaveOneOut(),),
    losses=(losses.PPOClip(clip_low=0.2, clip_high=0.4),),
    aggregation=TokenMean(),
  )
