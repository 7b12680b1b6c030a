"""AlphaPO: SimPO with a curved reward.

Paper: Gupta et al., "AlphaPO: Reward Shape Matters for LLM Alignment", 2025.
Change: against SimPO, the mean log-prob a becomes (1 - exp(-alpha a)) / alpha;
  alpha to 0 is SimPO.
Defaults: alpha 0.25, others of SimPO (ours; the paper tunes them per model,
  unverified).
Pieces: PairLoss(score=MeanLogp(beta=2.0, alpha=0.25),
  link=Sigmoid(label_smoothing=0.0, gamma=1.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: read in paper (digest).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=alphapo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'simpo'  # what influence compares it with


def get_method() -> Method:
  """A concave reward of the mean log-prob."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.MeanLogp(beta=2.0, alpha=0.25), link=pref.Sigmoid(gamma=1.0)
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
