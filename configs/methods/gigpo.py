"""GiGPO: GRPO, and a second comparison of steps from the same state.

Paper: Feng et al., "Group-in-Group Policy Optimization for LLM Agent
  Training", 2025.
Change: against GRPO, a turn also gets its discounted return minus the mean over
  all turns of the group that began in the same state.
Defaults: weight 1, gamma 0.95, clip 0.2, KL 0.01 (verl-agent scripts); both
  parts are centred, not divided by their standard deviation (the yaml's
  mean_norm; scripts divide: add GroupScale(), StepGroups.scale=True).
Pieces: GroupCenter(); StepGroups(weight=1.0, gamma=0.95, scale=False,
  eps=1e-06); PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.01,
  estimator='k3'); TokenMean()
Headline: ALFWorld 90.8% success, WebShop 75.2% with 7B (paper).
Evidence: verified in code (verl-agent gigpo/core_gigpo.py).
Paper and code: the code's episode part is a mean over steps, so that long
  episodes weigh more, and invalid actions cost 0.1 there; here episodes count
  once, and penalties are the task's.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=gigpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo'  # what influence compares it with


def get_method() -> Method:
  """Centred rewards of episodes and of steps."""
  return Method(
    credit=(credit.GroupCenter(), credit.StepGroups()),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=0.01)),
    aggregation=TokenMean(),
  )
