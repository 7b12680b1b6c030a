"""KeyDoor with a sub-goal in every turn, for hierarchical credit.

Command: python -m experiments.train --config=configs/planned_keydoor.py
  --method=hiper --set=model.value_head=True --set=model.num_values=3
  --workdir=runs/planned
Cost: about 10 minutes on 2 CPU cores.
Expected: reward/mean rises from -0.16 with seed 0; no whole run was measured.
"""

import dataclasses

from configs import keydoor
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import PlannedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """As configs/keydoor.py; a turn has three letters."""
  config, turns = keydoor.get_config(method), 16
  return dataclasses.replace(
    config,
    task=PlannedKeyDoor(),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=7 * turns,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=3, max_observation_tokens=4
      ),
    ),
  )
