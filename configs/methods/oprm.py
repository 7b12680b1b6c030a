"""OPRM: PPO whose steps pay for lowering a process model's least score.

Paper: Sun et al., "Easy-to-Hard Generalization: Scalable Alignment Beyond Human
  Supervision", 2024.
Change: against PPO, the end of a step earns the change of the least score of
  the steps so far, and a small bonus. Needs model.value_head=True and a process
  model: --add='reward_models=RewardModel(path=..., steps="min", weight=0.0)'.
Defaults: scores above 0.5 cost nothing, bonus 0.25 in all, KL 0.01, clips 0.2,
  value loss 0.1; learning rate 2e-5.
Pieces: StepScores(start=0.5, bonus=0.25, scale=1.0, scheme='min');
  KLInReward(coef=0.01, estimator='k1', level='token'); GAE(gamma=1.0,
  lam=0.95); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.1, clip=0.2); TokenMean(); LambdaReturn(gamma=1.0, lam=0.95)
Headline: 34.0% on MATH500 with a 7B model that was supervised on levels 1 to 3.
Evidence: verified in code (Edward-Sun/easy-to-hard math_rl_utils.py, by a
  digest; its whitened rewards and penalty on not ending are left out).
Command: python -m experiments.train --config=configs/worlds/stepped.py
  --method=oprm --set=model.value_head=True --set=model.path=runs/chain_warm
  --add='reward_models=RewardModel(path="runs/stepped_prm",steps="min")'
  --set=reward_models.RewardModel.weight=0.0
  --set="reward_models.RewardModel.step_ends=(';','>')"
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """PPO on the outcome and the steps."""
  return Method(
    shaping=(shaping.StepScores(), shaping.KLInReward(coef=0.01)),
    credit=(credit.GAE(gamma=1.0, lam=0.95), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=0.95),
    losses=(losses.PPOClip(), losses.ValueClip(coef=0.1)),
    aggregation=TokenMean(),
  )
