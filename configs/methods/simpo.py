"""SimPO: mean log-probs with a target margin, no reference.

Paper: Meng et al., "SimPO: Simple Preference Optimization with a Reference-Free
  Reward", 2024.
Change: against DPO, the reward is the mean log-prob of a token, and chosen
  responses must lead by a margin.
Defaults: beta 2, gamma / beta 0.5 (Llama3-Base; per model 2 to 10 and 0.1 to
  0.8); learning rate 3e-7 to 1e-6.
Pieces: PairLoss(score=MeanLogp(beta=2.0), link=Sigmoid(label_smoothing=0.0,
  gamma=1.0), coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (princeton-nlp/SimPO, by a digest).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=simpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Lengths do not count."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.MeanLogp(beta=2.0), link=pref.Sigmoid(gamma=1.0)
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
