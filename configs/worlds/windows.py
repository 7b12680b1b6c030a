"""World windows: chain whose responses are written 16 tokens an iteration.

Command: python -m experiments.train --config=configs/worlds/windows.py
  --method=t_ppo --set=model.path=runs/chain_warm --set=model.value_head=True
  --set=method.losses.FinishedValue.coef=0.02 --set=rollout.window_tokens=48
  --set=optimizer.learning_rate=1e-4 --set=iterations=100
  --workdir=runs/windows
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about 3 minutes on an idle CPU core.
Expected (seed 0): sampled accuracy 0.27 -> 0.47. With windows of 16 tokens, the
  default, it falls (see experiments/papers/worlds/README.md).
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py with 256 rows of their own prompts, and windows."""
  config = chain.get_config(method)
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(
      config.rollout, num_prompts=256, group_size=1, window_tokens=16
    ),
    update=dataclasses.replace(config.update, minibatch_prompts=128),
  )
