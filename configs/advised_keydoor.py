"""Sub-goals for a small agent in KeyDoor, by a decoder of 30,000 parameters.

Command: python -m experiments.train --config=configs/advised_keydoor.py
  --method=grpo --workdir=runs/advised
Cost: TODO
Expected: TODO
"""

import dataclasses

from configs import keydoor
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import AdvisedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """As configs/keydoor.py on 4 x 4 grids; six turns of one letter."""
  config, turns = keydoor.get_config(method), 6
  return dataclasses.replace(
    config,
    iterations=60,
    task=AdvisedKeyDoor(size=4, num_train=200),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=5 * turns,
      turns=dataclasses.replace(config.rollout.turns, max_turns=turns),
    ),
    evaluation=EvaluationConfig(every=60, num_prompts=64),
  )
