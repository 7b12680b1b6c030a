"""World mismatch: stale, sampled from weights that are rounded to int4.

Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=tis --set=model.path=runs/chain_warm --workdir=runs/mismatch
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import stale
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/stale.py with a sampler that differs from the trainer."""
  config = stale.get_config(method)
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(config.rollout, sampler_weights='int4'),
    guards=dataclasses.replace(config.guards, max_logp_gap=None),
  )
