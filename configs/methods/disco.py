"""DisCO: right answers above a soft maximum of wrong ones.

Paper: Li et al., "DisCO: Reinforcing Large Reasoning Models with Discriminative
  Constrained Optimization", 2025.
Change: against GRPO, the mean log-probability of right answers is raised above
  a soft maximum over wrong ones; no std, no clip, a squared hinge on the KL to
  the old policy.
Defaults: tau 10, score mean logp, hinge 1e3 and 1e-4, learning rate 2e-6
  (1.5B), 8 samples (official scripts).
Pieces: DisCO(tau=10.0, threshold=0.5, score='logp'); KLConstraint(coef=1000.0,
  limit=0.0001); TokenMean()
Headline: DeepSeek-R1-Distill-Qwen-1.5B, average of six sets: GRPO .457, DAPO
  .473, DisCO .533.
Evidence: verified in code (Optimization-AI/DisCO).
Paper and code: the code writes the logarithm as S / sg[S], so its logged loss
  means nothing; its disco_Lratio branch fails on an extra argument.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=disco
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Raw rewards decide which rows are right."""
  return Method(
    losses=(
      losses.DisCO(tau=10.0),
      regularizers.KLConstraint(coef=1e3, limit=1e-4),
    ),
    aggregation=TokenMean(),
  )
