"""World graded: explore with the number of operations as the level of a prompt.

  python -m experiments.train --config=configs/worlds/graded.py --method=mopps
    --set=model.path=runs/explore_warm --workdir=runs/graded
configs/worlds/explore.py has the command that makes runs/explore_warm.
Cost: about a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import explore
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Levels
from rl_jax.worlds import BelievedChain

OPERATIONS = (2, 3, 4)


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/explore.py with 513 problems, of which i has 2 + i mod 3."""
  tasks = (
    BelievedChain(min_operations=count, max_operations=count)
    for count in OPERATIONS
  )
  return dataclasses.replace(
    explore.get_config(method), task=Levels(tuple(tasks), num_train=513)
  )
