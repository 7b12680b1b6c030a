"""World annotators: comparisons by eleven people, of whom three disagree.

Command: python -m experiments.train --config=configs/worlds/annotators.py
  --method=annotator_mixture --workdir=runs/annotators
Cost: half a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import proxy
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/proxy.py with 3,000 comparisons of two tastes."""
  config = proxy.get_config(method)
  task = dataclasses.replace(
    config.task, num_train=3000, annotators=11, minority=3
  )
  return dataclasses.replace(config, iterations=300, task=task)
