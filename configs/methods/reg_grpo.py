"""Reg-GRPO: standardised log-ratios are regressed on advantages.

Paper: Park et al., "DeepVideo-R1: Video Reinforcement Fine-Tuning via
  Difficulty-aware Regressive GRPO", 2025.
Change: against GRPO, the group's standardised log-ratios are fitted to its
  standardised rewards; no ratio, no clip.
Defaults: eps 1e-2 (ours, bounds the singular first step), ddof 0, KL 1e-3
  (ours); those of the paper are unverified.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=0); GroupRegression(eps=0.01);
  KLPenalty(coef=0.001, estimator='k3'); TokenMean()
Headline: SEED-Bench-R1 L3, Qwen2-VL-7B: GRPO 44.9, Reg-GRPO with augmentation
  53.8.
Evidence: read in paper (formulas given in words); repository not readable.
Paper and code: not compared. Of the difficulty-aware augmentation
  reg_grpo@augmented has the hints for hard prompts, reg_grpo@graded longer ones
  for harder prompts, by the task's solution in place of the best trace, and
  reg_grpo@windowed measures how hard against the last 10 rollouts (ours, the
  paper's number is unverified); noise on easy inputs is for images, not texts.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=reg_grpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import TokenMean

VARIANTS = {
  'augmented': ('rollout=EasierPrompts(margin=0.0)',),
  'graded': ('rollout=EasierPrompts(margin=0.0, graded=True)',),
  'windowed': ('rollout=EasierPrompts(margin=0.0, graded=True, window=10)',),
}


def get_method() -> Method:
  """Standardised rewards as targets."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale(ddof=0)),
    losses=(losses.GroupRegression(), regularizers.KLPenalty()),
    aggregation=TokenMean(),
  )
