"""HNPG: the critic of an on-policy method is fitted on data, too.

Paper: Zhou et al., "Offline Data Enhanced On-Policy Policy Gradient with
  Provable Guarantees", 2023.
Change: against PPO, recorded responses with their rewards train the value head
  beside the samples, and never the policy. Needs model.value_head=True and rows
  of data: rollout.recorded_prompts.
Defaults: equal numbers of both kinds of rows (paper: equal weight of two mean
  squared errors), lambda 0.97 (code); clipped steps in place of natural ones.
Pieces: GAE(gamma=1.0, lam=0.97); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); SampledRows(weighs=('policy', 'regularizer'));
  TokenMean(); LambdaReturn(gamma=1.0, lam=0.97)
Headline: unverified.
Evidence: reconstructed as a method of language models: its code
  (YifeiZhou02/HNPG) fits Q by least squares on transitions of a lock, here the
  lambda-returns of recorded responses stand for its targets.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=hnpg --set=rollout.recorded_prompts=32 --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """PPO without KL; policy losses on samples only."""
  return Method(
    credit=(credit.GAE(gamma=1.0, lam=0.97),),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.97),
    losses=(losses.PPOClip(), losses.ValueClip()),
    weights=(weights.SampledRows(weighs=('policy', 'regularizer')),),
    aggregation=TokenMean(),
  )
