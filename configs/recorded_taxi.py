"""Recorded walks in Taxi, then others that the clone plays.

Command: python -m experiments.train --config=configs/recorded_taxi.py
  --method=sft --workdir=runs/taxi_start
Cost: a minute of a CPU core. Needs the extra 'games'.
Expected: with seed 0, of played episodes, returns of -45 of drawn and 7.2 of
  greedy ones (evaluation/sample_reward/reward, evaluation/reward/reward); all
  greedy episodes bring the passenger home.
"""

import dataclasses

from configs import taxi
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.tasks import RecordedWalks


def get_config(method: Method) -> ExperimentConfig:
  """64 walks a step, of whose actions half are random."""
  config = taxi.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=RecordedWalks(
      task=dataclasses.replace(config.task, num_train=1000),
      noise=0.5,
      turns=config.rollout.turn_limits.max_turns,
      num_recorded=1,
      turn_ends=False,
    ),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=64, group_size=1, recorded_prompts=64
    ),
    update=UpdateConfig(minibatch_prompts=64),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=3e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=64, num_samples=8),
  )
