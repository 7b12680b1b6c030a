"""GTAlign: the reward is the geometric mean of two welfares.

Paper: "GTAlign: Game-Theoretic Alignment of LLM Assistants for Mutual Welfare",
  2025.
Change: against PPO without KL, the reward is the root of the product of the
  welfare of the user and that of the model, so that neither is bought with the
  other. Needs model.value_head=True.
Defaults: eps 1e-4 (code); the welfares are components of the task, by their
  names in method.shaping.CobbDouglas.components; lambda 1 (verl's default). The
  paper's own, of responses that weigh payoffs, are those of the reward function
  rl_jax.tasks.welfare:gtalign, which gives their mean as the reward, too.
Pieces: CobbDouglas(components=('outcome', 'format'), eps=0.0001);
  RunningScale(center=True, eps=1e-08); GAE(gamma=1.0, lam=1.0);
  Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); TokenMean(); LambdaReturn(gamma=1.0, lam=1.0)
Headline: unverified.
Evidence: verified in code (ulab-uiuc/GTAlign recipe/gamellm, by a digest: the
  mean and the z-score; both welfares are in rl_jax/tasks/welfare.py).
Paper and code: the code takes z-scores over the batch of each data source, here
  they are over all rollouts so far (RunningScale).
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=gtalign --set=model.path=runs/chain_warm --set=model.value_head=True
  --set="method.shaping.CobbDouglas.components=('outcome', 'steps')"
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Rewards on the scale of all past ones, then PPO."""
  return Method(
    shaping=(shaping.CobbDouglas(), shaping.RunningScale(center=True)),
    credit=(credit.GAE(gamma=1.0, lam=1.0), credit.Whiten()),
    value_target=credit.LambdaReturn(gamma=1.0, lam=1.0),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
