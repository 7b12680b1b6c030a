"""World windows: chain whose responses are written 16 tokens an iteration.

Command: python -m experiments.train --config=configs/windows.py
  --method=t_ppo --set=model.path=runs/chain_warm --set=model.value_head=True
  --workdir=runs/windows
configs/chain.py has the command that makes runs/chain_warm.
Cost: about a minute on 2 CPU cores.
Expected: not measured yet.
"""

import dataclasses

from configs import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/chain.py with 256 rows of their own prompts, and windows."""
  config = chain.get_config(method)
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(
      config.rollout, num_prompts=256, group_size=1, window_tokens=16
    ),
    update=dataclasses.replace(config.update, minibatch_prompts=128),
  )
