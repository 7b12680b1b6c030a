"""Ensemble of reward models: the mean, less a penalty on disagreement.

Paper: Coste et al., "Reward Model Ensembles Help Mitigate Overoptimization",
  2023.
Change: against GRPO, the reward is the mean of several components less coef
  times their variance. Components are reward models by name:
  --set="method.shaping.Ensemble.components=('a', 'b', 'c')" with three
  --add='reward_models=RewardModel(name=..., path=..., weight=0.0)'.
Defaults: coef 0.5 (paper: 0.1 to 1 for PPO; from memory).
Pieces: Ensemble(components=('outcome', 'format'), kind='uncertainty',
  coef=0.5); GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed (from memory of the paper).
Command: python -m experiments.train --config=configs/countdown.py
  --method=rm_ensemble
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on the pessimistic mean."""
  return Method(
    shaping=(shaping.Ensemble(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
