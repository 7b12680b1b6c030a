"""Countdown with 3 digits and a decoder of 140,000 parameters.

  python -m experiments.sft --config=configs/countdown_small.py
    --stop_accuracy=0.4 --evaluate_every=20 --max_prompt_tokens=8
    --max_response_tokens=6 --out=runs/countdown_small_warm
  python -m experiments.train --config=configs/countdown_small.py --method=grpo
    --set=model.path=runs/countdown_small_warm --workdir=runs/countdown_small
Four optimizer steps a rollout, so that clips and penalties on the ratio act.
Cost: about a minute for each command on 2 CPU cores.
Expected: see experiments/papers/entropy_mechanism/sweep.py.
"""

import dataclasses

from configs.worlds import arithmetic_small
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Countdown


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/arithmetic_small.py on another task."""
  small = arithmetic_small.get_config(method)
  return dataclasses.replace(
    small,
    task=Countdown(max_numbers=3, num_train=10_000),
    rollout=dataclasses.replace(
      small.rollout, max_prompt_tokens=8, max_response_tokens=6
    ),
  )
