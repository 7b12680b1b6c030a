"""2-digit addition and subtraction with a decoder of 140,000 parameters.

  python -m experiments.sft --config=configs/worlds/arithmetic_small.py
    --stop_accuracy=0.6 --evaluate_every=20 --max_prompt_tokens=6
    --max_response_tokens=5 --out=runs/arithmetic_small_warm
  python -m experiments.train --config=configs/worlds/arithmetic_small.py
    --method=grpo --set=model.path=runs/arithmetic_small_warm
    --workdir=runs/arithmetic_small
Four optimizer steps a rollout, so that clips and penalties on the ratio act.
Cost: about a minute for each command on 2 CPU cores.
Expected: see experiments/papers/entropy_mechanism/sweep.py.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Arithmetic


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples; held-out pairs for evaluation."""
  return ExperimentConfig(
    iterations=120,
    task=Arithmetic(digits=2, signed=False, reverse=True),
    method=method,
    model=ModelSource(config=presets.small(max_positions=64)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=6,
      max_response_tokens=5,
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=6, num_prompts=128, num_samples=8),
  )
