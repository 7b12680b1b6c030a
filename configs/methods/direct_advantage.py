"""Direct Advantage PO: step log-ratios are regressed on advantages.

Paper: Liu et al., "Improving Multi-Step Reasoning Abilities of Large Language
  Models with Direct Advantage Policy Optimization", 2024.
Change: against GRPO, the log-ratio of a whole step is fitted to its advantage
  over beta by least squares; no ratio, no clip.
Defaults: beta 0.01 (best of the paper). Steps are runs of policy tokens, the
  whole response in one turn; the advantage is the reward minus the mean of the
  group, the paper's rule at terminal steps.
Pieces: GroupCenter(); StepRegression(coef=0.01); TokenMean()
Headline: MATH, Llama-3.1-8B-Instruct: 49.42 to 53.62 (GRPO 52.28).
Evidence: read in paper (formulas in words); no code seen.
Paper and code: the paper is offline: a critic trained first on Monte Carlo
  success rates scores candidate steps; here rollouts are fresh and outcomes are
  compared. Other per-token credit (GAE) gives step advantages too.
Command: python -m experiments.train --config=configs/arithmetic.py
  --method=direct_advantage
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Centred rewards as targets of each step."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.StepRegression(coef=0.01),),
    aggregation=TokenMean(),
  )
