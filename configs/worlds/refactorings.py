"""World refactorings: a part of a function becomes a function.

  python -m experiments.pipeline --pipeline=refactorings
    --workdir=runs/refactorings
makes the start and trains with three rewards, by GRPO and by PPO. Of your own
start:
  python -m experiments.train --config=configs/worlds/refactorings.py
    --method=ppo --set=model.path=runs/refactorings/warm
    --workdir=runs/refactored
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Refactorings


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples of at most 56 tokens."""
  return ExperimentConfig(
    iterations=60,
    task=Refactorings(),
    method=method,
    model=ModelSource(
      config=presets.small(max_positions=128),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=40,
      max_response_tokens=60,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=60, num_prompts=300, num_samples=4),
  )
