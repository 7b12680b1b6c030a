"""Countdown with 3 digits and a decoder of 140,000 parameters.

  python -m experiments.sft --config=configs/countdown_small.py
    --stop_accuracy=0.4 --evaluate_every=20 --max_prompt_tokens=8
    --max_response_tokens=6 --out=runs/countdown_small_warm
  python -m experiments.train --config=configs/countdown_small.py --method=grpo
    --set=model.path=runs/countdown_small_warm --workdir=runs/countdown_small
Four optimizer steps a rollout, so that clips and penalties on the ratio act.
Cost: about a minute for each command on 2 CPU cores.
Expected: see experiments/papers/entropy_mechanism.py.
"""

from rl_jax.config import (
  EvaluationConfig,
  ExperimentConfig,
  ModelSource,
  RolloutConfig,
  UpdateConfig,
)
from rl_jax.method import Method
from rl_jax.models import ModelConfig
from rl_jax.optimizers import OptimizerConfig
from rl_jax.tasks import Countdown


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples; held-out problems for evaluation."""
  return ExperimentConfig(
    iterations=120,
    task=Countdown(max_numbers=3, num_train=10_000),
    method=method,
    model=ModelSource(
      config=ModelConfig(
        vocab_size=1,  # replaced by the size of the task's alphabet
        num_layers=2,
        width=64,
        num_heads=2,
        num_kv_heads=2,
        head_size=32,
        mlp_size=256,
        max_positions=64,
      )
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=8,
      max_response_tokens=6,
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=6, num_prompts=128, num_samples=8),
  )
