"""World family_levels: families with the number of digits as the level.

  python -m experiments.train --config=configs/worlds/family_levels.py
    --method=craft_gui --set=model.path=runs/craft_gui/warm
    --workdir=runs/family_levels
configs/pipelines/craft_gui.py makes the start.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Levels
from rl_jax.worlds import Families

DIGITS = (3, 5, 7)


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/families.py; prompt i has DIGITS[i mod 3] digits."""
  config = families.get_config(method)
  tasks = (Families(min_digits=x, max_digits=x) for x in DIGITS)
  return dataclasses.replace(
    config,
    task=Levels(tuple(tasks), num_train=1800),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=600, num_samples=2
    ),
  )
