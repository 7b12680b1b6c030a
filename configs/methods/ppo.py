"""PPO: a value head, GAE, clipped policy and value losses, KL in the reward.

Paper: Schulman et al., "Proximal Policy Optimization Algorithms", 2017; for
  language models Zheng et al., "Secrets of RLHF in Large Language Models Part
  I: PPO", 2023.
Change: against GRPO, the baseline of a token is the value head's prediction at
  that token. Needs model.value_head=True.
Defaults: gamma 1, lambda 0.95, clips 0.2, KL 0.01 (MOSS-RLHF English script);
  value loss 1/2 max(...) and whitening as verl.
Pieces: KLInReward(coef=0.01, estimator='k1', level='token'); GAE(gamma=1.0,
  lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: unverified.
Evidence: verified in code (MOSS-RLHF, verl).
Paper and code: the appendix of "Secrets of RLHF" says lambda 0.9, its code
  0.95; verl leaves whitened advantages non-zero on masked tokens.
  ppo@turn_rewards has rewards of turns at their ends, as the "Practitioner's
  Guide to Multi-turn Agentic Reinforcement Learning"; else an episode's return
  is on its last token. ppo@released is what verl's scripts of early 2025 ran
  (Search-R1, ToolRL): lambda 1, KL 1e-3, value clip 0.5, entropy bonus 1e-3.
  ppo@critic_first trains the critic only in its first steps, and so do the
  variants of that name of its descendants; --set=model.critic=own.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=ppo --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

VARIANTS = {
  'critic_first': ('weights+=CriticFirst(steps=64)',),
  'released': (
    'shaping.KLInReward.coef=0.001',
    'credit.GAE.lam=1.0',
    'value_target.lam=1.0',
    'losses.ValueClip.clip=0.5',
    'losses+=EntropyBonus(coef=0.001)',
  ),
  'turn_rewards': (
    'shaping.KLInReward=null',
    'shaping+=TurnRewards()',
    'shaping+=KLInReward(coef=0.01)',
  ),
}


def get_method() -> Method:
  """Token rewards with KL, GAE, whitening; lambda-returns for the values."""
  return Method(
    shaping=(shaping.KLInReward(coef=0.01),),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
