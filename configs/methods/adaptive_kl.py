"""Adaptive KL: the coefficient of KL holds the divergence near a target.

Paper: Ziegler et al., "Fine-Tuning Language Models from Human Preferences",
  2019.
Change: against GRPO, the coefficient of the KL term is a state: it grows while
  the divergence from the reference is above the target and shrinks below it.
Defaults: gain 0.1 a step, error cut at 0.2 (paper); target 0.01 nats a token
  and start 0.1 are ours (paper: 6 to 10 nats a response, in the reward).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); AdaptiveKL(start=0.1, target=0.01, gain=0.1, limit=0.2,
  estimator='k3'); SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed from the paper's formula; the same one is in RL4LMs.
Paper and code: the paper has KL in the reward of PPO, here it is in the loss.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=adaptive_kl
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO with an adaptive coefficient of KL."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.AdaptiveKL()),
    aggregation=SeqMeanTokenMean(),
  )
