"""World explore: countdown with 4 digits, from a start that solves few.

  python -m experiments.sft --config=configs/explore.py --steps=300
    --learning_rate=2e-3 --max_prompt_tokens=8 --max_response_tokens=8
    --evaluate_every=100 --out=runs/explore_warm
  python -m experiments.train --config=configs/explore.py --method=grpo
    --set=model.path=runs/explore_warm --workdir=runs/explore
Four optimizer steps a rollout, 16 samples a prompt.
Cost: about a minute for each command on 2 CPU cores.
Expected: not measured yet.
"""

import dataclasses

from configs import countdown_small
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Countdown


def get_config(method: Method) -> ExperimentConfig:
  """configs/countdown_small.py with 4 digits; only solutions are rewarded."""
  small = countdown_small.get_config(method)
  return dataclasses.replace(
    small,
    task=Countdown(
      min_numbers=4,
      max_numbers=4,
      num_train=10_000,
      reward_weights={'outcome': 1.0},
    ),
    rollout=dataclasses.replace(
      small.rollout, group_size=16, max_prompt_tokens=8, max_response_tokens=8
    ),
  )
