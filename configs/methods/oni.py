"""ONI: turn PPO with a reward for messages that an annotator calls helpful.

Paper: "Online Intrinsic Rewards for Decision Making Agents from Large Language
  Model Feedback", 2024.
Change: against turn PPO, each turn also earns what an annotator, asked while
  the policy learns, thinks of the message that answers it, divided by a power
  of how often the episode has had that message.
Defaults: intrinsic 0.4, exponent 3, eta 0.5 (released); theta 0, extrinsic 1
  (released -0.5; 0.1 or 10). Needs model.value_head=True and a task that
  marks messages.
Pieces: TurnRewards(); FeedbackReward(kind='retrieval', factors=(5, 9),
  helpful=(2, 3, 4), extrinsic=1.0, intrinsic=0.4, exponent=3.0, error=0.0,
  labels=10, delay=0, eta=0.5, theta=0.0, rate=1.0, steps=32, seed=0, table='');
  TurnGAE(gamma=1.0, lam=0.95, bootstrap=False); Whiten(eps=1e-08, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); ValueClip(coef=0.5, clip=0.2);
  TokenMean(); TurnLambdaReturn(gamma=1.0, lam=0.95, bootstrap=False)
Headline: best on sparse NetHack tasks without offline data (abstract,
  unverified).
Evidence: reconstructed (facebookresearch/oni, by a digest). There the policy
  learns by asynchronous PPO with V-trace, the annotator is an 8B model that
  labels meanwhile, and the models read text. The pipeline oni has a small model
  that labels between rounds.
Command: python -m experiments.train --config=configs/worlds/told_keydoor.py
  --method=oni --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'turn_ppo'  # what influence compares it with


def get_method() -> Method:
  """Rewards of turns, and for their messages."""
  return Method(
    shaping=(shaping.TurnRewards(), shaping.FeedbackReward()),
    credit=(credit.TurnGAE(), credit.Whiten()),
    value_target=credit.TurnLambdaReturn(),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
