"""PPO-max: PPO with scaled rewards and without whitening.

Paper: Zheng et al., "Secrets of RLHF in Large Language Models Part I: PPO",
  2023.
Change: against PPO, rewards are divided by the standard deviation of all past
  rewards, and advantages are not whitened. Needs model.value_head=True.
Defaults: reward scaling on, centring and reward clip off, KL 0.01, gamma 1,
  lambda 0.95, both clips 0.2 (train_ppo_en.sh). Switches of the paper are
  variants: --method=ppo_max@reward_clip; `ptx` also needs rows of data, for
  example --set=rollout.recorded_prompts=16 --set=rollout.group_size=1. Its
  buffer gathers two rollouts of the same weights before it trains: that is
  twice the rollout.num_prompts. A critic with its own weights, initialised from
  the reward
  model: --set=model.critic=own --set=model.value_from=DIR. Not here: the
  scripts' repetition penalty.
Pieces: RunningScale(center=False, eps=1e-08); KLInReward(coef=0.01,
  estimator='k1', level='token'); GAE(gamma=1.0, lam=0.95);
  PPOClip(clip_low=0.2, clip_high=0.2); ValueClip(coef=0.5, clip=0.2);
  TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: 10k steps without collapse.
Evidence: verified in code (OpenLMLab/MOSS-RLHF).
Paper and code: the text also lists the reward clip, the pretraining loss and a
  critic from the reward model; the released scripts leave them off.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=ppo_max --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'
VARIANTS = {
  'reward_unscaled': ('shaping.RunningScale=null',),
  'reward_centred': ('shaping.RunningScale.center=true',),
  'reward_clip': ('shaping.RunningScale.clip=5.0',),
  'no_kl': ('shaping.KLInReward=null',),
  'whitened': ('credit+=Whiten(eps=1e-6, ddof=0)',),
  'advantage_clip': ('credit+=ClipAdvantage(limit=0.5)',),
  'no_policy_clip': (
    'losses.PPOClip.clip_low=1.0',
    'losses.PPOClip.clip_high=1e6',
  ),
  'no_value_clip': ('losses.ValueClip.clip=1e6',),
  'entropy_bonus': ('losses+=EntropyBonus(coef=1e-3)',),
  'entropy_target': ('losses+=EntropyTarget(coef=1e-3, target=0.5)',),
  'critic_first': ('weights+=CriticFirst(steps=50)',),
  'ptx': ('losses+=PretrainingLoss(coef=0.1)', 'weights+=SampledRows()'),
}


def get_method() -> Method:
  """PPO on rewards scaled by running moments."""
  return Method(
    shaping=(shaping.RunningScale(), shaping.KLInReward(coef=0.01)),
    credit=(credit.GAE(gamma=1.0, lam=0.95),),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
