"""Multi-label reward model: value heads learn ratings of several aspects.

Paper: Li et al., "Optimizing Safe and Aligned Language Generation: A
  Multi-Objective GRPO Approach", 2025.
Change: against the reward model of pairs, a single response has a number for
each aspect, and a head for each is fitted to it by least squares. As a reward
  their sum with weights: RewardModel(path=..., head_weights=(0.5, 0.5)).
Defaults: two aspects; weights and learning rate are unverified.
Pieces: AspectRegression(num_aspects=2); TokenMean()
Headline: unverified.
Evidence: reconstructed (from the abstract).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=aspect_reward_model --set="task=PreferenceRows(path='rated.jsonl')"
  --set="task.aspects=('helpfulness','correctness')" --set=rollout.group_size=1
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reward_model'  # what influence compares it with


def get_method() -> Method:
  """Rated responses from data; needs model.num_values=2."""
  return Method(losses=(losses.AspectRegression(),), aggregation=TokenMean())
