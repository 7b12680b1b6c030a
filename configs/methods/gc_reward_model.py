"""Goal-conditioned reward model: states point to the goals of good responses.

Paper: "Learning Goal-Conditioned Representations for Language Reward Models",
  2024.
Change: against the reward model of pairs, hidden states of a chosen response
  are drawn near its later ones and away from those of the rejected one.
Defaults: coef 0.5, 16 sources and goals of each pair (released code).
Pieces: PairLoss(score=FinalValue(), link=Sigmoid(label_smoothing=0.0,
  gamma=0.0), coef=1.0); ContrastiveGoal(coef=0.5, samples=16); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (goal-conditioned-rm, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=gc_reward_model
The pipeline gc_reward_model uses the states: samples that point away from the
goal are discarded while they are written.
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces import regularizers
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reward_model'  # what influence compares it with


def get_method() -> Method:
  """Pairs from data; needs model.value_head."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.FinalValue(), link=pref.Sigmoid()),
      regularizers.ContrastiveGoal(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
