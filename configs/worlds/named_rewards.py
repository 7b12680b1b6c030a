"""World named_rewards: families whose prompts name the reward that counts.

  python -m experiments.train --config=configs/worlds/named_rewards.py
    --method=parrot@identified
    --set="method.credit.OwnComponent.components=('outcome','places')"
    --set="method.credit.ParetoFront.components=('outcome','places')"
    --set=model.path=runs/parrot/warm --workdir=runs/named_rewards
configs/pipelines/parrot.py makes the start.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import RewardIdentifiers
from rl_jax.worlds import Families


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/families.py with O or P before each prompt."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    task=RewardIdentifiers(Families(), marks={'outcome': 'O', 'places': 'P'}),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=300, num_samples=4
    ),
  )
