"""World unlabelled: chain without rewards, for methods that make their own.

Command: python -m experiments.train --config=configs/worlds/unlabelled.py
  --method=empo --set=model.path=runs/chain_warm --workdir=runs/unlabelled
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py whose outcome is reported and weighs nothing."""
  config = chain.get_config(method)
  task = dataclasses.replace(config.task, reward_weights={'outcome': 0.0})
  return dataclasses.replace(config, task=task)
