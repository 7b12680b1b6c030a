"""HyPO: DPO on data and a KL on the policy's own samples.

Paper: Song et al., "The Importance of Online Data: Understanding Preference
  Fine-tuning via Coverage", 2024.
Change: against DPO, the KL to the reference is estimated on fresh samples, so
  that it holds where data do not reach.
Defaults: beta 0.05, lambda 1e-4, 2 samples (ours; those of the paper are
  unverified).
Pieces: PairLoss(score=LogRatio(beta=0.05, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  SampledKL(coef=0.0001); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: reconstructed (the surrogate).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --set=rollout.recorded_prompts=32 --method=hypo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Pairs of the data (rollout.recorded_prompts of them) and samples."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=0.05), link=pref.Sigmoid()),
      pref.SampledKL(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
