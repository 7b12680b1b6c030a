"""RTO: PPO with token rewards that a DPO policy implies.

Paper: Zhong et al., "DPO Meets PPO: Reinforced Token Optimization for RLHF",
  2024.
Change: against PPO, every token also earns the log-ratio of a DPO policy to the
  reference. Needs model.value_head=True and the DPO policy of the same model
  and start: method.shaping.ImplicitReward.path.
Defaults: coefficients 0.05 (clipped at 0.05) and 0.01 (KL), reward clipped at
  10, clips 0.2, lambda 0.95; learning rates 5e-7 and 9e-6 (critic).
Pieces: RunningScale(center=True, clip=10.0, eps=1e-08); KLInReward(coef=0.01,
  estimator='k1', level='token'); ImplicitReward(path='runs/dpo', coef=0.05,
  clip=0.05); GAE(gamma=1.0, lam=0.95); Whiten(eps=1e-08, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); ValueClip(coef=0.5, clip=0.2);
  TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: unverified.
Evidence: verified in code (zkshan2002/RTO experience_maker.py, by a digest).
Paper and code: the reward model is normalised by its own training data there,
  here by all rollouts so far (RunningScale).
Command: python -m experiments.train --config=configs/worlds/proxy.py
  --method=rto --set=model.value_head=True
  --set=method.shaping.ImplicitReward.path=runs/proxy_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """The reward on its own scale, a KL, then what the DPO policy implies."""
  return Method(
    shaping=(
      shaping.RunningScale(center=True, clip=10.0),
      shaping.KLInReward(coef=0.01),
      shaping.ImplicitReward(),
    ),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
