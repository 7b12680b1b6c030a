"""Recorded walks of PlannedKeyDoor, in grids other than those of `papers`.

A player says what is next, the key, the door or the goal, and goes there; 70%
of its turns are drawn from all.
Command: python -m experiments.train
  --config=configs/worlds/recorded_planned_keydoor.py --method=sft
  --workdir=runs/planned_walks
Cost: a minute and a half of a CPU core.
Expected: with seed 0, in grids that it has not read, 0.8% of drawn episodes
  come to the goal, with a progress of 0.27 of 1
  (evaluation/sample_reward/outcome and /progress); in the one of
  experiments/papers/episodes, whose way is short, a third to the goal.
"""

import dataclasses

from configs.worlds import planned_keydoor
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.tasks import RecordedWalks


def get_config(method: Method) -> ExperimentConfig:
  """64 walks a step, by a decoder of 10,000 parameters."""
  config, turns = planned_keydoor.get_config(method), 10
  return dataclasses.replace(
    config,
    iterations=200,
    task=RecordedWalks(
      task=dataclasses.replace(config.task, num_train=2000),
      noise=0.7,
      turns=turns,
      num_recorded=1,
      turn_ends=False,
    ),
    model=ModelSource(
      config=presets.small(num_layers=1, width=32, head_size=16, mlp_size=64)
    ),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=64,
      group_size=1,
      recorded_prompts=64,
      max_response_tokens=7 * turns,
      turns=dataclasses.replace(config.rollout.turn_limits, max_turns=turns),
    ),
    update=UpdateConfig(minibatch_prompts=64),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=3e-3),
    evaluation=EvaluationConfig(every=100, num_prompts=64, num_samples=8),
  )
