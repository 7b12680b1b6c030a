"""RepExp: a bonus for representations unlike the rest of the group.

Paper: "Representation-Based Exploration for Language Models: From Test-Time to
  Post-Training", 2025.
Change: against GRPO, beta times the leverage of the response's mean hidden
  state among its group is added to the reward, if the group has a right answer;
  every token counts alike.
Defaults: beta 0.01, ridge 0.01, leverage, no KL (train_elliptical.sh).
Pieces: EllipticalBonus(coef=0.01, ridge=0.01, correct_above=0.5,
  kind='leverage'); GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); TokenMean()
Headline: AIME24: pass@80 equals GRPO's pass@256 (7B).
Evidence: verified in code (verl-recipe rep_exp, train_elliptical.sh).
Paper and code: the code projects hidden states of a frozen model to 32 random
  dimensions in float64; here the sampling policy's own, in full.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=rep_exp
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """GRPO with the elliptical bonus."""
  return Method(
    shaping=(shaping.EllipticalBonus(coef=0.01, ridge=0.01),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
