"""TR-DPO: DPO against a reference that follows the policy.

Paper: Gorbatovski et al., "Learn Your Reference Model for Real Good Alignment",
  2024.
Change: against DPO, the reference moves towards the policy every 512
  iterations, so that a pair is not pushed for good.
Defaults: 0.6 of the policy every 512 iterations (TRL, sync_ref_model); the hard
  update of the paper is --set="method.reference=CopyEvery(iterations=512)".
  The command has 300 iterations, and moves it every 64.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs(); Average(decay=0.4, iterations=512)
Headline: unverified.
Evidence: verified in code (TRL DPOConfig: ref_model_mixup_alpha,
  ref_model_sync_steps, by copies of the file).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=tr_dpo --set=method.reference.iterations=64
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import Average

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """DPO with a soft update of the reference."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
    reference=Average(decay=0.4, iterations=512),
  )
