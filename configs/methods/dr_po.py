"""DR-PO: samples begin with a part of the response that the data hold.

Paper: Chang et al., "Dataset Reset Policy Optimization for RLHF", 2024.
Change: against PPO, with probability beta a sample starts after the first l
  tokens of the reference response of L tokens, l uniform on 1 .. L - 1; only
  the tokens after them are trained. Needs model.value_head=True.
Defaults: beta 1 (code), which never trains the first token and is for policies
  that have learned the references; all else is that of `ppo`. The code has 4
  epochs, value loss 0.1, whitened rewards, KL 0.05, temperature 0.7, and -1 for
  responses without an end.
Pieces: KLInReward(coef=0.01, estimator='k1', level='token'); GAE(gamma=1.0,
  lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); TokenMean(); LambdaReturn(gamma=1.0, lam=0.95);
  DatasetReset(beta=1.0)
Headline: GPT-4 win rates above PPO and DPO on TL;DR and HH; numbers unverified.
Evidence: verified in code (Cornell-RL/drpo drpo.py, tril
  logit_processors.py); the tables of the paper are unverified.
Paper and code: in the code rewards, advantages, whitening and the value loss
  run over the given tokens and over padding after the end token, and padding
  counts in the mean of the policy loss; here all are of sampled tokens only.
  reward/mean is that of samples after given beginnings: read the evaluation.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=dr_po --set=model.value_head=True --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers.dataset_reset import DatasetReset

BASELINE = 'ppo'

VARIANTS = {'critic_first': ('weights+=CriticFirst(steps=64)',)}


def get_method() -> Method:
  """PPO on responses that begin as the references do."""
  return Method(
    shaping=(shaping.KLInReward(coef=0.01),),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
    rollout=DatasetReset(),
  )
