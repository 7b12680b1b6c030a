"""PF-PPO: the policy learns from the best and worst sample of a prompt.

Paper: Shen and Zhang, "Policy Filtration in RLHF to Fine-Tune LLM for Code
  Generation", 2024.
Change: against PPO, rows are weighted by the rank of their reward in the group:
  best-worst. Needs model.value_head=True.
Defaults: (1, 0, 1), KL 0.01, 5 samples a prompt; best-random is
  RankFilter(best=0.4, middle=0.1, worst=0.1).
Pieces: KLInReward(coef=0.01, estimator='k1', level='token'); GAE(gamma=1.0,
  lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); RankFilter(best=1.0, middle=0.0, worst=1.0);
  TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: HumanEval, MBPP, LeetCode: PPO 78.1, 73.8, 25.2; best-worst 82.4,
  76.2, 30.4.
Evidence: verified in code (swtheing/PF-PPO-RLHF replay_buffer.py).
Paper and code: the release draws rows with replacement and filters the critic's
  rows too; here expected weights, and the value loss sees every row. Rewards
  are normalised there, not here.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=pf_ppo --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with

VARIANTS = {'critic_first': ('weights+=CriticFirst(steps=64)',)}


def get_method() -> Method:
  """PPO with weights by rank."""
  return Method(
    shaping=(shaping.KLInReward(coef=0.01),),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    weights=(weights.RankFilter(best=1.0, middle=0.0, worst=1.0),),
    aggregation=TokenMean(),
  )
