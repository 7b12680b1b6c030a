"""XPO: online DPO against the reference, with optimism.

Paper: Xie et al., "Exploratory Preference Optimization: Harnessing Implicit
  Q*-Approximation for Sample-Efficient RLHF", 2024.
Change: against online DPO, one of the responses is of the reference, and
  responses of the reference become less likely.
Defaults: beta 0.1, alpha 1e-5 (TRL); pairs of the current batch only, as
  there. The group has as many rows of the reference again.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); Optimism(coef=1e-05);
  TokenMean(); AgainstOpponent(margin_scale=0.0); Against(coef=1.0,
  trained='both')
Headline: unverified.
Evidence: verified in code (TRL xpo_trainer.py, by a digest).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=xpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import Against

BASELINE = 'online_dpo'  # what influence compares it with


def get_method() -> Method:
  """Samples of the policy against samples of the reference."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),
      pref.Optimism(),
    ),
    aggregation=TokenMean(),
    pairs=pref.AgainstOpponent(),
    rollout=Against(),
  )
