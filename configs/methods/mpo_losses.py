"""MPO: three losses on pairs, of preference, of quality and of generation.

Paper: Wang et al., "Enhancing the Reasoning Ability of Multimodal Large
  Language Models via Mixed Preference Optimization", 2024.
Change: against DPO, each response is also compared with 0 (bco_pair), and
  chosen ones are kept likely.
Defaults: beta 0.1; weights 0.8, 0.2 and 1 (TRL, loss_type sigmoid, bco_pair,
  sft).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=0.8);
  PairLoss(score=LogRatio(beta=0.1, length='sum'), link=BCOPair(), coef=0.2);
  ChosenLikelihood(coef=1.0, average='token'); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest).
Paper and code: bco_pair has no shift here, as in recent versions of TRL;
  earlier ones subtract a running mean of the rewards, as the method bco does.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=mpo_losses
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Their sum."""
  score = pref.LogRatio()
  return Method(
    losses=(
      pref.PairLoss(score=score, link=pref.Sigmoid(), coef=0.8),
      pref.PairLoss(score=score, link=pref.BCOPair(), coef=0.2),
      pref.ChosenLikelihood(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
