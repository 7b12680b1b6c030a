"""Countdown on digits: reach the target with the given numbers.

  python -m experiments.sft --config=configs/countdown.py --steps=3000
    --stop_accuracy=0.3 --out=runs/countdown_warm
  python -m experiments.train --config=configs/countdown.py --method=dapo
    --set=model.path=runs/countdown_warm --workdir=runs/countdown
Cost: a few minutes for each command on 2 CPU cores.
Expected: not measured yet.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import Countdown


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts x 8 samples of flat expressions such as 3*7+4."""
  return ExperimentConfig(
    iterations=200,
    task=Countdown(),
    method=method,
    model=ModelSource(config=presets.tiny()),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=8,
      max_prompt_tokens=16,
      max_response_tokens=12,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=20, num_prompts=256),
  )
