"""Router-R1: PPO on answers that earn more the cheaper they were.

Paper: Zhang et al., "Router-R1: Teaching LLMs Multi-Round Routing and
  Aggregation via Reinforcement Learning", 2025.
Change: against PPO, right answers have the reward (1 - alpha) R + alpha c, c in
  [0, 1] by the root of their cost between percentiles of the last 1000. Needs
  model.value_head=True and a task with costs, as tasks.WithTools.
Defaults: alpha 0.6 (paper sweeps it; 0 in the scripts), window 1000; no KL
  (0.001 in the scripts).
Pieces: CostReward(alpha=0.6, window=1000); GAE(gamma=1.0, lam=0.95);
  Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: above routing baselines on 7 QA sets (paper, unverified).
Evidence: verified in code (qa_em.py, by digest).
Paper and code: a wrong answer earns nothing by being cheap. In the code a text
  of a wrong form has -1; router_r1@gated has that where a task counts what is
  malformed, as configs/worlds/priced_tools.py, whose tools have two prices.
Command: python -m experiments.train --config=configs/worlds/calculator.py
  --method=router_r1 --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with
VARIANTS = {'gated': ("shaping.CostReward.malformed='malformed'",)}


def get_method() -> Method:
  """PPO on rewards that fall with the cost."""
  return Method(
    shaping=(shaping.CostReward(),),
    credit=(credit.GAE(), credit.Whiten()),
    value_target=credit.LambdaReturn(),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
