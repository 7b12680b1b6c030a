"""Duration-aware PPO: advantages times how long their actions took.

Paper: Yang et al., "Reinforcement Learning for Machine Learning Engineering
  Agents", 2025.
Change: against PPO, each advantage has the factor d / mean d of its turn, which
  undoes that an asynchronous collector sees fast actions too often. Rollouts
  here are synchronous, so that the factor would bias the gradient towards slow
  actions: training refuses it by name. Needs model.value_head=True, an
  environment that says durations, and episodes of such a collector, which
  duration_ppo@by_time imitates.
Defaults: those of PPO (clips 0.2, gamma 1, lambda 0.95).
Pieces: GAE(gamma=1.0, lam=0.95); Whiten(eps=1e-08, ddof=1); DurationWeight();
  PPOClip(clip_low=0.2, clip_high=0.2); ValueClip(coef=0.5, clip=0.2);
  TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: 22% over a scaffold on 12 Kaggle tasks (paper, unverified).
Evidence: reconstructed from notes on the paper.
Command: python -m experiments.train --config=configs/worlds/priced_tools.py
  --method=duration_ppo --set=model.value_head=True
  (refused, see Change; --set=method.credit.DurationWeight=null trains PPO)
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with

VARIANTS = {
  'by_time': ('rollout=WallClock()',),
  'by_time_unweighted': (
    'rollout=WallClock()',
    'credit.DurationWeight=null',
  ),
}


def get_method() -> Method:
  """PPO whose slow actions weigh more."""
  return Method(
    credit=(credit.GAE(), credit.Whiten(), credit.DurationWeight()),
    value_target=credit.LambdaReturn(),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
