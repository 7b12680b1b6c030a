"""World easy_chain: chain with 2 or 3 operations, whose steps are labelled.

  python -m experiments.papers.worlds.step_labels
    --config=configs/worlds/easy_chain.py --checkpoint=runs/easy_to_hard/warm
    --prompts=600 --completions=1 --out=runs/easy_labels
configs/pipelines/easy_to_hard.py makes the start, labels and models.
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py with short problems."""
  config = chain.get_config(method)
  task = dataclasses.replace(config.task, min_operations=2, max_operations=3)
  return dataclasses.replace(config, task=task)
