"""Parrot: of several rewards, only samples on the Pareto front count.

Paper: Lee et al., "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning
  Framework for Text-to-Image Generation", 2024.
Change: against GRPO, samples that another one of the group beats in every
  reward have no gradient, so that no weights of the rewards decide.
Defaults: equal sum of the components as the reward of those that count (ours).
Pieces: ComponentScale(components=('outcome', 'format'), weights=(1.0, 1.0),
  eps=1e-06); ParetoFront(components=('outcome', 'format'));
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed (abstract; there rewards are standardised over the batch
  and the prompt names the reward).
Command: python -m experiments.train --config=configs/countdown.py
  --method=parrot
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """Components scaled alone, then those of dominated samples dropped."""
  return Method(
    credit=(credit.ComponentScale(), credit.ParetoFront()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
