"""World family_mixture: the six families as the parts of a mixture.

  python -m experiments.train --config=configs/worlds/family_mixture.py
    --method=rule_reasoner@parts --set=model.path=runs/rule_reasoner/warm
    --workdir=runs/family_mixture
configs/pipelines/rule_reasoner.py makes the start.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Mixture, MixturePart
from rl_jax.worlds import Families


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/families.py with a part for each family, equally often."""
  config = families.get_config(method)
  parts = (
    MixturePart(name=name, task=Families(families=name)) for name in 'crsdim'
  )
  return dataclasses.replace(
    config,
    task=Mixture(tuple(parts)),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=600, num_samples=4
    ),
  )
