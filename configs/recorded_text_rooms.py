"""Recorded walks in TextWorld's small rooms, then games that they lack.

Command: python -m experiments.train --config=configs/recorded_text_rooms.py
  --method=sft --workdir=runs/text_rooms_start
Cost: about 12 minutes of a CPU core, of which the first run writes games for
  one and a half. Needs the extra 'textworld'.
Expected: the played games are won in 0.14 of drawn and 0.34 of greedy episodes
  with seed 0 (evaluation/sample_reward/outcome, evaluation/reward/outcome); of
  the recorded walks 0.95 win. Names of things are digits, and in games that it
  has not read it copies them badly: four of six commands are none of the game
  (at 6e3f627, which drew other games).
"""

import dataclasses

from configs import text_rooms
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.tasks import RecordedWalks


def get_config(method: Method) -> ExperimentConfig:
  """128 walks a step, of whose commands 30% are random."""
  config = text_rooms.get_config(method)
  return dataclasses.replace(
    config,
    iterations=200,
    task=RecordedWalks(
      # Other games than those that RL continues with.
      task=dataclasses.replace(config.task, num_train=192, seed=1),
      noise=0.3,
      turns=config.rollout.turn_limits.max_turns,
    ),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=16, recorded_prompts=16
    ),
    update=UpdateConfig(minibatch_prompts=16),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=3e-3),
    evaluation=dataclasses.replace(config.evaluation, every=100),
  )
