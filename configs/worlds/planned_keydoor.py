"""KeyDoor with a sub-goal in every turn, for hierarchical credit.

Command: python -m experiments.train --config=configs/worlds/planned_keydoor.py
  --method=hiper --set=model.value_head=True --set=model.num_values=3
  --workdir=runs/planned
Cost: about 10 minutes on 2 CPU cores.
Expected: share of all episodes of 60 iterations that reach the goal with one
  sub-task, in the small world `planned_1` of experiments/papers/episodes, over
  five seeds. At a rate of 1e-3 0.75 +- 0.03, of the last tenth 0.95; at 3e-3
  0.55 +- 0.15, of the last tenth 0.34, as four seeds fall below 0.2 after 0.92
  or more; flat credit (turn_ppo) at 3e-3 0.91 +- 0.01. What matters at 3e-3:
  their own values after cut episodes (bootstrap) 0.25 +- 0.21; a reward
  for keeping a sub-goal, 0.03, 0.80 +- 0.03, and no cost of it 0.69 +- 0.21;
  three times the coefficient of the values 0.66 +- 0.23; no KL term
  0.60 +- 0.35. Segments are mostly one turn where keeping costs, and an action
  is then credited with the difference of two values only. Turns that cannot
  be read have the credit of actions: 0.8 of ten turns are such, without it 2.3,
  but success was higher, 0.72 +- 0.14. With three sub-tasks, 1e-3 and 200
  iterations no seed of HiPER reaches the goal, flat credit ends above 0.99 in
  all five. With model.critic=own HiPER has 0.78 with one sub-task, 0.75 in the
  same three seeds without, and 0.00 with three. Flat credit at lambda 0 has
  0.00 with three, too: segments of one turn leave an action no more than the
  next value. From recorded walks (configs/worlds/recorded_planned_keydoor.py)
  HiPER needs model.critic=own and optimizer.critic_multiplier=10: 0.92 and 0.77
  with one and three sub-tasks at 3e-4, flat credit 0.98 and 0.80; without them
  0.19 and 0.63.
"""

import dataclasses

from configs.worlds import keydoor
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.worlds import PlannedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/keydoor.py with turns of three letters."""
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
