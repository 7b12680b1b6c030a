"""Reward-augmented DPO: the prompt names the score of the chosen one.

Paper: Zhang et al., "Reward-Augmented Data Enhances Direct Preference Alignment
  of LLMs", 2024.
Change: against DPO, every pair is two: under the score of either response that
  response is chosen, so that good rejected ones are not unlearned. The data do
  it: tasks.GoalPrompts.
Defaults: beta 0.01 (recipes; learning rate 5e-7, batches of 128, label
  smoothing 0.3 with Qwen2-7B).
Pieces: PairLoss(score=LogRatio(beta=0.01, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (shenao-zhang/reward-augmented-preference, by a
  digest).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=reward_augmented_dpo
  --set="task=GoalPrompts(task=RulePairs(task=Arithmetic(digits=2)))"
  --set=rollout.max_prompt_tokens=9
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """DPO with a small beta."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=0.01), link=pref.Sigmoid()),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
