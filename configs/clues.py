"""Clues to a letter, and a reward u for saying that they do not suffice.

Command: python -m experiments.train --config=configs/clues.py --method=grpo
  --set=model.path=runs/clues_frozen --workdir=runs/clues
Cost: PENDING
Expected: PENDING
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
    iterations=200,
    task=Clues(reward_weights={'outcome': 1.0, 'abstained': 0.55}),
    method=method,
    model=ModelSource(
      config=presets.small(width=32, head_size=16, mlp_size=64)
    ),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=16,
      max_prompt_tokens=9,
      max_response_tokens=2,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-3),
    evaluation=EvaluationConfig(every=100, num_prompts=500),
  )
