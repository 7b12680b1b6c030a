"""Ranked points on a small screen, one or several in a response.

  python -m experiments.sft --config=configs/worlds/points.py --steps=1000
    --learning_rate=2e-3 --max_prompt_tokens=44 --max_response_tokens=12
    --out=runs/points_warm
  python -m experiments.train --config=configs/worlds/points.py --method=aepo
    --set=model.path=runs/points_warm --workdir=runs/points
Cost: about two minutes for each command on 2 CPU cores.
Expected: 0.25 of samples hit at the start; 0.37 with aepo at a rate of 1e-3,
  0.34 with rloo at 3e-4 (five seeds, experiments/papers/worlds/README.md).
"""

import dataclasses

from configs.worlds import boxes
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import Boxes


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/boxes.py with up to four points as response."""
  config = boxes.get_config(method)
  rollout = dataclasses.replace(config.rollout, max_response_tokens=12)
  return dataclasses.replace(config, task=Boxes(form='points'), rollout=rollout)
