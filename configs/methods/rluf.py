"""RLUF: the predicted reaction of users is one of several rewards.

Paper: "Reinforcement Learning from User Feedback", 2025.
Change: against GRPO, the reward is a weighted sum of helpfulness and the
  probability of a positive reaction, gated by safety. The reaction is a
  reward model by name: --set="method.shaping.GatedSum.components=('outcome',
  'love')" --set="method.shaping.GatedSum.logits=('love',)" with
  --add='reward_models=RewardModel(name="love", path=..., weight=0.0)'.
Defaults: weights 1 and 0.3, no gate (ours; unverified there).
Pieces: GatedSum(components=('outcome', 'format'), weights=(1.0, 0.3),
  logits=(), threshold=0.5, blocked=0.0); GroupCenter(); GroupScale(eps=1e-06,
  ddof=1); PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001,
  estimator='k3'); SeqMeanTokenMean()
Headline: 28% more positive reactions in an A/B test.
Evidence: reconstructed (abstract and notes of others).
Command: python -m experiments.train --config=configs/countdown.py --method=rluf
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on the sum."""
  return Method(
    shaping=(shaping.GatedSum(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
