"""DPO: logistic loss on the gap of two log-ratios.

Paper: Rafailov et al., "Direct Preference Optimization: Your Language Model is
  Secretly a Reward Model", 2023.
Change: against a policy gradient, no reward and no sampling: the log-ratio of
  chosen over rejected responses is fitted to the labels of the data.
Defaults: beta 0.1 (TRL, Tulu 2.5); learning rate 5e-7 to 1e-6 for whole models.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Pairs from data, a frozen reference."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
