"""3-digit arithmetic for methods that read more than the reward.

Command: python -m experiments.train
  --config=configs/worlds/arithmetic_described.py --method=empo
  --workdir=runs/empo
Cost and expected: as configs/worlds/arithmetic.py, whose rewards it has.
"""

import dataclasses

from configs.worlds import arithmetic
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Described


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/arithmetic.py with row inputs: clusters, difficulties."""
  config = arithmetic.get_config(method)
  return dataclasses.replace(config, task=Described(config.task))
