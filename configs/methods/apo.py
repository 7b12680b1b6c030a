"""APO (View-R1): difficulty-weighted KL, and long wrong answers cost more.

Paper: "APO: Asymmetric Policy Optimization" (View-R1), 2025.
Change: against GRPO, the KL of good samples is weighted by 1 - exp(-e p) (DADS)
  and wrong rows longer than the mean right one get a larger advantage (STCR).
Defaults: KL 1e-3, growth 1e-5, clip 0.2, policy token mean, KL averaged over
  a row's tokens and then rows, std eps 1e-9 (scripts).
Pieces: GroupCenter(); GroupScale(eps=1e-09, ddof=1);
  LongWrongScale(growth=1e-05, correct_above=0.5); PPOClip(clip_low=0.2,
  clip_high=0.2); DifficultyKL(coef=0.001, correct_above=0.5,
  aggregation=SeqMeanTokenMean()); TokenMean()
Headline: 7 points on average over Qwen2.5-VL-3B.
Evidence: verified in code (Indolent-Kawhi/View-R1).
Paper and code: the code has a commented alternative weight exp(-e d); a row is
  right there if the integer part of accuracy + 0.5 format is 1.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=apo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean, TokenMean


def get_method() -> Method:
  """GRPO advantages with STCR, and the KL term of DADS."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(eps=1e-9),
      credit.LongWrongScale(growth=1e-5),
    ),
    losses=(
      losses.PPOClip(),
      regularizers.DifficultyKL(coef=1e-3, aggregation=SeqMeanTokenMean()),
    ),
    aggregation=TokenMean(),
  )
