"""Direct Advantage PO: step log-ratios are regressed on advantages.

Paper: Liu et al., "Improving Multi-Step Reasoning Abilities of Large Language
  Models with Direct Advantage Policy Optimization", 2024.
Change: against GRPO, the log-ratio of a whole step is fitted to its advantage
  over beta by least squares; no ratio, no clip.
Defaults: beta 0.01 (best of the paper). Steps are runs of policy tokens, the
  whole response in one turn; the advantage is the reward minus the mean of the
  group, the paper's rule at terminal steps. With steps that the task marks
  (configs/chain.py): direct_advantage@candidates samples a group of candidates
  for one step and values each by four completions, keeps states whose values
  differ by 0.1 and one of equal candidates; direct_advantage@critic has every
  step of a response, and advantages by a value head.
Pieces: GroupCenter(); StepRegression(coef=0.01, segments='turns'); TokenMean()
Headline: MATH, Llama-3.1-8B-Instruct: 49.42 to 53.62 (GRPO 52.28).
Evidence: read in paper (formulas in words); no code seen.
Paper and code: the paper is offline: a critic with weights of its own, trained
  first by cross-entropy on success rates of 16 completions, scores M candidates
  for a step. Here rollouts are fresh. @candidates takes the mean reward of the
  completions itself, without a critic; @critic learns by squared error,
  together with the policy, and takes the value before a step for the mean over
  candidates.
Command: python -m experiments.train --config=configs/arithmetic.py
  --method=direct_advantage
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

VARIANTS = {
  'candidates': (
    'credit.GroupCenter=null',
    'credit+=CandidateAdvantage()',
    'rollout=CandidateSteps(samples=3, min_spread=0.1)',
  ),
  'critic': (
    'credit.GroupCenter=null',
    "credit+=StepAdvantage(segments='extras')",
    "losses.StepRegression.segments='extras'",
    'losses+=ValueClip(clip=1e6)',
    'value_target=LambdaReturn(gamma=1.0, lam=1.0)',
  ),
}


def get_method() -> Method:
  """Centred rewards as targets of each step."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.StepRegression(coef=0.01),),
    aggregation=TokenMean(),
  )
