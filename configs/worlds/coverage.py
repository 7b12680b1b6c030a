"""A walk of twelve moves on a grid of 16 cells that should meet none twice.

Command: python -m experiments.train --config=configs/worlds/coverage.py
  --method=subpo --workdir=runs/coverage
Cost: about a minute on 2 CPU cores.
Expected: reward/coverage 0.89 and reward/outcome 0.29 over the last 10 of 100
  iterations with seed 0; REINFORCE on the outcome stays at 0, on the coverage
  of whole walks it is not separated (experiments/papers/worlds/README.md).
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Coverage


def get_config(method: Method) -> ExperimentConfig:
  """64 walks an iteration; a walk that meets no cell twice has reward 1."""
  return ExperimentConfig(
    iterations=100,
    task=Coverage(),
    method=method,
    model=ModelSource(
      config=presets.small(width=32, head_size=16, mlp_size=64)
    ),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=8,
      max_prompt_tokens=1,
      max_response_tokens=13,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=8),
  )
