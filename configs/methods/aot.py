"""AOT: sorted margins of the policy beat sorted margins of the reference.

Paper: Melnyk et al., "Distributional Preference Alignment of LLMs via Optimal
  Transport", 2024.
Change: against DPO, margins are compared by their rank in the batch:
  first-order stochastic dominance.
Defaults: beta 0.1 (TRL). method.losses.SortedPairs.form=unpaired for responses
  that are not pairs.
Pieces: SortedPairs(beta=0.1, label_smoothing=0.0, form='paired'); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=aot
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Ranks over the whole minibatch."""
  return Method(
    losses=(pref.SortedPairs(),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
