"""Multiples among five numbers: rewards for a part of the right options.

Command: python -m experiments.train --config=configs/worlds/multiple_choice.py
  --method=tw_grpo --workdir=runs/choice
Cost: about a minute on 2 CPU cores.
Expected: reward/partial 0.21 over the last 20 of 200 iterations with seed 0:
  from random weights mostly one right option is learned, no whole set.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import MultipleChoice


def get_config(method: Method) -> ExperimentConfig:
  """The soft reward and the format, 256 rows an iteration."""
  return ExperimentConfig(
    iterations=200,
    task=MultipleChoice(reward_weights={'partial': 1.0, 'format': 1.0}),
    method=method,
    model=ModelSource(config=presets.small(max_positions=64)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=18,
      max_response_tokens=6,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=256),
  )
