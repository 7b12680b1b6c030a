"""PPO-max: PPO with the stabilisers that its authors kept.

Paper: Zheng et al., "Secrets of RLHF in Large Language Models Part I: PPO",
  2023.
Change: against PPO, rewards are divided by the standard deviation of all past
  rewards, and advantages are not whitened. Needs model.value_head=True.
Defaults: reward scaling on, centring and reward clip off, KL 0.01, gamma 1,
  lambda 0.95, both clips 0.2 (train_ppo_en.sh). Switches:
  method.shaping.RunningScale.center, .clip, method.shaping.KLInReward.coef.
Headline: 10k steps without collapse.
Evidence: verified in code (OpenLMLab/MOSS-RLHF).
Paper and code: the text also lists the reward clip, the pretraining loss and a
  critic from the reward model; the released scripts leave them off.
Command: python -m experiments.train --config=configs/arithmetic.py
  --method=ppo_max --set=model.value_head=True
"""

from rl_jax import credit, losses
from rl_jax.aggregation import TokenMean
from rl_jax.method import Method


def get_method() -> Method:
  """PPO on rewards scaled by running moments."""
  return Method(
    shaping=(credit.RunningScale(), credit.KLInReward(coef=0.01)),
    credit=(credit.GAE(gamma=1.0, lam=0.95),),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
