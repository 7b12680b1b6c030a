"""IPO: the gap of mean log-ratios is regressed on 1 / (2 tau).

Paper: Azar et al., "A General Theoretical Paradigm to Understand Learning from
  Human Preferences", 2023.
Change: against DPO, the gap has a target, so that certain preferences do not
  drive it to infinity.
Defaults: tau 0.1; mean log-ratios as TRL has them (EasyLM takes sums:
  method.losses.PairLoss.score.length=sum).
Pieces: PairLoss(score=LogRatio(beta=1.0, length='mean'), link=Square(tau=0.1),
  coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=ipo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """A square link on mean log-ratios."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.LogRatio(beta=1.0, length='mean'), link=pref.Square(tau=0.1)
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
