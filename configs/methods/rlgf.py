"""RLGF: a guide writes the beginning or the end of responses.

Paper: Chang et al., "Learning to Generate Better Than Your LLM", 2023.
Change: against PPO, with probability beta a guide writes the first l tokens of
  a response, which are not trained (PPO++). rlgf@aggrevated: the policy writes
  these, which are trained, and the guide the rest, which trains the values.
  rlgf@lols draws one of both for each rollout, rlgf@d2lols has the latter in
  the first 20 rollouts. Needs model.value_head=True.
Defaults: beta 0.8, top-p 0.92 of the guide, tau 0.8 (LOLS) and 20 (D2LOLS, as
  on IMDB); all else is that of `ppo`. The guide is the initial policy or
  --set=method.rollout.path.
Pieces: KLInReward(coef=0.01, estimator='k1', level='token'); GAE(gamma=1.0,
  lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); GuidedTokens(trains='policy');
  GuidedTokens(trains='value'); TokenMean(); LambdaReturn(gamma=1.0, lam=0.95);
  GuideRollIn(guide='begins', schedule='fixed', beta=0.8, tau=0.8, top_p=0.92)
Headline: better than PPO on IMDB and CommonGen, and than its guide; numbers
  unverified.
Evidence: verified in code (Cornell-RL/tril aggrevated.py, lols.py, d2lols.py,
  ppo_pp.py, by a digest).
Paper and code: with probability 1 - beta a response of AggreVaTeD is by
  the guide only and trains only values. LOLS has two critics there, one here.
Command: python -m experiments.train --config=configs/worlds/families.py
  --method=rlgf --set=model.value_head=True --set=model.path=runs/rlgf/weak
  --set="method.rollout.path='runs/rlgf/guide'"
The pipeline rlgf makes both models.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping, weights
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers.guide_roll_in import GuideRollIn

BASELINE = 'ppo'  # what influence compares it with
VARIANTS = {
  'aggrevated': ("rollout.guide='ends'",),
  'lols': ("rollout.schedule='mixed'",),
  'd2lols': ("rollout.schedule='switched'", 'rollout.tau=20.0'),
}


def get_method() -> Method:
  """PPO whose responses a guide begins or ends."""
  return Method(
    shaping=(shaping.KLInReward(coef=0.01),),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip()),
    weights=(
      weights.GuidedTokens(trains='policy'),
      weights.GuidedTokens(trains='value'),
    ),
    aggregation=TokenMean(),
    rollout=GuideRollIn(),
  )
