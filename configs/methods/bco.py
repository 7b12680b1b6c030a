"""BCO: a binary classifier of responses by their implicit reward.

Paper: Jung et al., "Binary Classifier Optimization for Large Language Model
  Alignment", 2024.
Change: against KTO, logistic losses around the running mean of the rewards
  instead of a KL.
Defaults: beta 0.1 (TRL); no density ratio for shifted prompts.
Pieces: BCO(beta=0.1); TokenMean()
Headline: unverified.
Evidence: verified in code (bco_pair of TRL dpo_trainer.py, in copies of it).
Paper and code: TRL's running mean is over batches, all of the same weight, here
  over rows; later versions of TRL have none, see mpo_losses.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=bco
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Labels of single responses."""
  return Method(
    losses=(pref.BCO(),),
    aggregation=TokenMean(),
  )
