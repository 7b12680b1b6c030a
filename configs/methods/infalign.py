"""InfAlign: rewards for the best of n samples, not for one.

Paper: Balashankar et al., "InfAlign: Inference-aware language model alignment",
  2024.
Change: against GRPO, the reward is a sample's rate of winning against samples
  of the reference, bent by exp(10 C): what counts is being among the best.
Defaults: t = 10 for best of n (-10 for worst of n, 0 is not allowed: leave the
  piece out); the reference is sampled as often as the policy, where the paper
  has some 100 samples a prompt.
Pieces: WinRate(with_self=0.0, against='opponent', center=0.0);
  Exponential(t=10.0); GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  SeqMeanTokenMean(); Against(coef=1.0, trained='policy')
Headline: unverified.
Evidence: reconstructed (abstract and secondary sources).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=infalign
experiments.papers.preferences.best_of_wins has the win rate of the best of n
samples of two runs.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers import Against


def get_method() -> Method:
  """Calibrated by the reference, then bent."""
  return Method(
    shaping=(
      shaping.WinRate(against='opponent'),
      shaping.Exponential(),
    ),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
    rollout=Against(trained='policy'),
  )
