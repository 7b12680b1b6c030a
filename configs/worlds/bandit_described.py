"""The bandit for methods that read more of a response than its reward.

Command: python -m experiments.train --config=configs/worlds/bandit_described.py
  --method=seed_grpo --workdir=runs/bandit
Cost and expected: as configs/worlds/bandit.py, whose rewards it has.
"""

import dataclasses

from configs.worlds import bandit
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Described


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/bandit.py with row inputs: clusters, formats, modes."""
  config = bandit.get_config(method)
  return dataclasses.replace(config, task=Described(config.task))
