"""KeyDoor with a sub-goal in every turn, for hierarchical credit.

Command: python -m experiments.train --config=configs/planned_keydoor.py
  --method=hiper --set=model.value_head=True --set=model.num_values=3
  --workdir=runs/planned
Cost: about 10 minutes on 2 CPU cores.
Expected: with one sub-task in the small world `planned_1` of
  experiments/papers/episodes, 0.55 +- 0.15 of all episodes of 60 iterations
  reach the goal over five seeds, with flat credit (turn_ppo) 0.91 +- 0.01. All
  seeds have 0.92 or more of an iteration within 30 and four fall below 0.2
  later: a segment is mostly one turn, whose actions are credited with
  V_high' - V_low alone, where a value's error counts as an advantage. Values of
  their own behind cut episodes (bootstrap) give 0.25 +- 0.21, three times the
  coefficient of the values 0.66 +- 0.23, no cost of keeping 0.69 +- 0.21, no
  KL term 0.60 +- 0.35.
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
