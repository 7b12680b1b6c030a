"""KeyDoor with messages and a reward at the goal only, for learned rewards.

Command: python -m experiments.train --config=configs/worlds/told_keydoor.py
  --method=oni --set=model.value_head=True --workdir=runs/told
Cost: about 2 minutes on 2 CPU cores.
Expected: with seed 0 all episodes take the key and open the door after 75 of
  150 iterations, and none reaches the goal: no message helps there. A discount
  of 0.9 does not change that. Turn PPO, with a reward at the goal only, ends
  at 0.07. On one grid with a short solution (`told` of experiments/papers/
  episodes) 0.38 of all episodes reach the goal, with turn PPO 0.00.
"""

import dataclasses

from configs.worlds import keydoor
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import NarratedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/keydoor.py with observations that are one letter longer."""
  config = keydoor.get_config(method)
  turns = dataclasses.replace(
    config.rollout.turn_limits, max_observation_tokens=5
  )
  return dataclasses.replace(
    config,
    task=NarratedKeyDoor(reward_weights={'outcome': 1.0}),
    rollout=dataclasses.replace(
      config.rollout, max_response_tokens=6 * turns.max_turns, turns=turns
    ),
  )
