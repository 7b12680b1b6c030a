"""Critique-GRPO: one sample of a group is a refinement after a critique.

Paper: "Critique-GRPO: Advancing LLM Reasoning with Natural Language and
  Numerical Feedback", 2025.
Change: against GRPO, every sample is criticised and answered once more; the
  first right refinement takes the place of one sample, and its tokens have
  p / (p + gamma) in place of a ratio. No clip, no scale.
Defaults: gamma 0.1, groups of 8, entropy bonus 1e-3, no KL.
Pieces: GroupCenter(); ShapedProbability(gamma=0.1); EntropyBonus(coef=0.001);
  SeqMeanTokenSumNorm(length=1024.0); CritiqueRefinement(solved_above=0.5)
Headline: about 4.5 points pass@1 over baselines (Qwen2.5-7B-Base; paper).
Evidence: verified in code (critique-GRPO, by a digest of the code).
Paper and code: the released loss is divided by the width of the padded
  responses only, not by the number of rows; here by both, and by a constant
  width, which rescales the gradient.
Command: python -m experiments.train --method=critique_grpo
  --config=configs/worlds/criticised_families.py
  --set=model.path=runs/critique_grpo/warm
The pipeline critique_grpo makes that start.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm
from rl_jax.rollouts.wrappers.critique_refinement import CritiqueRefinement

BASELINE = 'dr_grpo'  # what influence compares it with
VARIANTS = {'unrefined': ('rollout=null',)}


def get_method() -> Method:
  """Policy gradient with refinements."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.ShapedProbability(), regularizers.EntropyBonus(coef=1e-3)),
    aggregation=SeqMeanTokenSumNorm(length=1024.0),
    rollout=CritiqueRefinement(),
  )
