"""World stale: chain with 16 optimizer steps a rollout, so that ratios move.

  python -m experiments.train --config=configs/worlds/stale.py --method=grpo
    --set=model.path=runs/chain_warm --workdir=runs/stale
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py with minibatches of two prompts."""
  return dataclasses.replace(
    chain.get_config(method),
    iterations=30,
    update=UpdateConfig(minibatch_prompts=2),
  )
