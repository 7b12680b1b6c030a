"""World returning: chain with 64 problems, each of which returns every pass.

Command: python -m experiments.train --config=configs/worlds/returning.py
  --method=hapo --set=model.path=runs/chain_warm --workdir=runs/returning
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py with problems that methods with a history meet
  again."""
  config = chain.get_config(method)
  task = dataclasses.replace(config.task, num_train=64)
  return dataclasses.replace(config, task=task)
