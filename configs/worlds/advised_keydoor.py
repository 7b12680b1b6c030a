"""Sub-goals for a small agent in KeyDoor, by a decoder of 83,000 parameters.

Command: python -m experiments.train --config=configs/worlds/advised_keydoor.py
  --method=grpo --workdir=runs/advised
Cost: about half a minute on 2 CPU cores.
Expected: of the episodes of the last ten of 60 iterations 0.84 [0.83, 0.86]
  reach the goal, in 11.7 steps of the agent (five seeds, 95%), as many as with
  the best advice; 0.01 before training, when few turns are sub-goals at all.
  The agent by itself (task.listens=False), which has learned for as many steps,
  has 0.50 [0.46, 0.53] in 22 steps; with random sub-goals 0.36 (100 grids).
"""

import dataclasses

from configs.worlds import keydoor
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import AdvisedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/keydoor.py on 4 x 4 grids, with six turns of one letter."""
  config, turns = keydoor.get_config(method), 6
  return dataclasses.replace(
    config,
    iterations=60,
    task=AdvisedKeyDoor(size=4, num_train=200),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=5 * turns,
      turns=dataclasses.replace(config.rollout.turn_limits, max_turns=turns),
    ),
    evaluation=EvaluationConfig(every=60, num_prompts=64),
  )
