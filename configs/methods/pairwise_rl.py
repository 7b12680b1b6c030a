"""PairwiseRL: the reward is the chance of beating an anchor response.

Paper: "A Unified Pairwise Framework for RLHF: Bridging Generative Reward
  Modeling and Policy Optimization", 2025.
Change: against PPO, a response is compared with one of the reference to the
  same prompt; rewards that differ between prompts by a number are the same.
  Needs model.value_head=True.
Defaults: probabilities are those of a judge of pairs, asked in both orders, or
  of a reward model of pairs, if one has a weight; else sigmoids of differences
  of the reward (ours); as many anchors as samples; no KL.
Pieces: WinRate(temperature=1.0, with_self=0.0, against='opponent', center=0.0);
  GAE(gamma=1.0, lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); ValueClip(coef=0.5, clip=0.2); TokenMean();
  LambdaReturn(gamma=1.0, lam=0.95); Against(coef=1.0, trained='policy')
Headline: unverified.
Evidence: reconstructed (abstract and a review).
Command: python -m experiments.train --config=configs/countdown.py
  --method=pairwise_rl --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import Against

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """PPO on win rates against samples of the reference."""
  return Method(
    shaping=(shaping.WinRate(temperature=1.0, against='opponent'),),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
    rollout=Against(trained='policy'),
  )
