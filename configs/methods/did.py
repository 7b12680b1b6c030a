"""DID: online DPO that measures how sharp the preferences make the policy.

Paper: "Differential Information: An Information-Theoretic Perspective on
  Preference Optimization", 2025.
Change: against online DPO nothing in training: the entropy of the normalised
  ratio of policy and reference over the responses to a prompt is a metric, low
  where preferences reinforce few responses, high where they smooth.
Defaults: beta 0.1 (of DPO); 32 samples a prompt (a public review), so
  --set=rollout.group_size=32. Any method measures it with
  --add='method.losses=DifferentialInformation()'.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  DifferentialInformation(); TokenMean(); BestWorst(min_gap=0.0,
  margin_scale=0.0)
Headline: open-ended tasks gain from high, knowledge questions from low entropy.
Evidence: reconstructed (distribution and entropy by secondary sources, the
  estimate by importance weights is ours; the paper has no update rule).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=did --set=rollout.group_size=32
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'online_dpo'  # what influence compares it with


def get_method() -> Method:
  """Best against worst sample, a frozen reference, and the measure."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),
      pref.DifferentialInformation(),
    ),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
  )
