"""KTO: good and bad responses, one by one, against a reference point.

Paper: Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic
  Optimization", 2024.
Change: against DPO, labels of single responses suffice; gain saturates around
  the KL of the batch.
Defaults: beta 0.1, both weights 1 (TRL). Data must keep desirable * n_desirable
  / (undesirable * n_undesirable) within 1 to 4/3.
Pieces: KTO(beta=0.1, desirable=1.0, undesirable=1.0, baseline='mismatched');
  TokenMean()
Headline: unverified.
Evidence: verified in code (TRL kto_trainer.py, HALOs; by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=kto
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Each group has one more row: the response to another prompt."""
  return Method(
    losses=(pref.KTO(),),
    aggregation=TokenMean(),
  )
