"""StarPO: PPO over whole episodes with GAE of two levels.

Paper: Wang et al., "RAGEN: Understanding Self-Evolution in LLM Agents via
  Multi-Turn Reinforcement Learning", 2025.
Change: against PPO, GAE first over the ends of turns, then within each turn; a
  wider upper clip, an entropy bonus and no KL. Needs model.value_head=True.
Defaults: gamma_turn 0.95, gamma and lambda 1, clip 0.2 and 0.28, entropy 0.001
  (config/base.yaml). starpo@filtered is StarPO-S: the quarter of the groups
  with the largest deviation of returns; it needs --set=rollout.max_rounds=1.
Pieces: TurnRewards(); BiLevelGAE(gamma_turn=0.95, gamma=1.0, lam=1.0);
  Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.28);
  ValueClip(coef=0.5, clip=0.2); EntropyBonus(coef=0.001); TokenMean();
  LambdaReturn(gamma=1.0, lam=1.0)
Headline: unverified.
Evidence: verified in code (RAGEN-AI/RAGEN ragen/trainer/core_algos.py).
Paper and code: the code finds the ends of turns where a reward is not 0, which
  joins turns without reward; here they are those of the episode. Its values
  learn the two-level advantage plus V, here lambda-returns without discount;
  its -0.1 for a turn that is not an action is left to the task's reward.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=starpo --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with
VARIANTS = {'filtered': ('group_filter=TopSpread(fraction=0.25)',)}


def get_method() -> Method:
  """Rewards of turns, two levels of GAE, whitening."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.BiLevelGAE(), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=1.0),
    losses=(
      losses.PPOClip(clip_low=0.2, clip_high=0.28),
      losses.ValueClip(),
      regularizers.EntropyBonus(coef=0.001),
    ),
    aggregation=TokenMean(),
  )
