"""KeyDoor with messages and a reward at the goal alone, for learned rewards.

Command: python -m experiments.train --config=configs/told_keydoor.py
  --method=oni --set=model.value_head=True --workdir=runs/told
Cost: TODO
Expected: TODO
"""

import dataclasses

from configs import keydoor
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import ToldKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """As configs/keydoor.py; an observation has one letter more."""
  config = keydoor.get_config(method)
  turns = dataclasses.replace(config.rollout.turns, max_observation_tokens=5)
  return dataclasses.replace(
    config,
    task=ToldKeyDoor(reward_weights={'outcome': 1.0}),
    rollout=dataclasses.replace(
      config.rollout, max_response_tokens=6 * turns.max_turns, turns=turns
    ),
  )
