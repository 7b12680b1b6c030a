"""Direct Advantage PO: step log-ratios are regressed on advantages.

Paper: Liu et al., "Improving Multi-Step Reasoning Abilities of Large Language
  Models with Direct Advantage Policy Optimization", 2024.
Change: against GRPO, the log-ratio of a whole step is fitted to its advantage
  over beta by least squares; no ratio, no clip.
Defaults: beta 0.01 (best of the paper). Steps are runs of policy tokens, the
  whole response in one turn; the advantage is the reward minus the mean of the
  group, the paper's rule at terminal steps. With steps that the task marks
  (configs/worlds/chain.py): direct_advantage@candidates samples a group of
  candidates for one step and values each by four completions, keeps states
  whose values differ by 0.1 and one of equal candidates;
  direct_advantage@critic learns these values, of completions, by cross-entropy,
  and takes its own for the advantages (--set=model.value_head=True).
Pieces: GroupCenter(); StepRegression(coef=0.01, segments='turns'); TokenMean()
Headline: MATH, Llama-3.1-8B-Instruct: 49.42 to 53.62 (GRPO 52.28).
Evidence: read in paper (formulas in words); no code seen.
Paper and code: the paper is offline: a critic with its own weights, trained
  before the policy on success rates of 16 completions, scores the candidates.
  Here rollouts are fresh, and the critic is a head of the policy that learns
  together with it; states whose values hardly differ stay, as it learns from
  them.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
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
    'credit+=CandidateAdvantage(critic=True)',
    'losses+=CandidateValue()',
    'rollout=CandidateSteps(samples=3, min_spread=0.0)',
  ),
}


def get_method() -> Method:
  """Centred rewards as targets of each step."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.StepRegression(coef=0.01),),
    aggregation=TokenMean(),
  )
