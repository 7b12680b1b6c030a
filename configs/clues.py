"""Clues to a letter, and a reward u for saying that they do not suffice.

The best policy abstains iff P(right) < u. runs/clues_frozen is made by the
first command of experiments/abstention.py; from random weights GRPO learned to
abstain always, at u = 0.6.
Command: python -m experiments.train --config=configs/clues.py --method=grpo
  --set=model.path=runs/clues_frozen --workdir=runs/clues
Cost: about 1.5 minutes on one CPU core.
Expected: with seed 0 the mean reward on 3,000 test rows is 0.628; that of the
  best policy is 0.642, of an answer always 0.57, of none always 0.55. The
  likeliest response follows the rule on 89% of the rows.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import Clues


def get_config(method: Method) -> ExperimentConfig:
  """1024 rows an iteration; u = 0.55."""
  return ExperimentConfig(
    iterations=400,
    task=Clues(reward_weights={'outcome': 1.0, 'abstained': 0.55}),
    method=method,
    model=ModelSource(config=presets.small()),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=16,
      max_prompt_tokens=9,
      max_response_tokens=2,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=100, num_prompts=500),
  )
