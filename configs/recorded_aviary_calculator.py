"""Recorded episodes of sums in words with a calculator, then others.

Command: python -m experiments.train
  --config=configs/recorded_aviary_calculator.py --method=sft
  --workdir=runs/aviary_start
Cost: about two minutes of a CPU core. Needs the extra 'aviary'.
Expected: of played sums 0.10 of drawn and 0.36 of greedy episodes are right
  with seed 0 (evaluation/sample_reward/outcome, evaluation/reward/outcome), of
  the recorded ones 0.62. It copies results badly that have many digits.
"""

import dataclasses

from configs import aviary_calculator
from configs.environments import word_sums
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """32 episodes a step."""
  config = aviary_calculator.get_config(method)
  fields = {
    field.name: getattr(config.task, field.name)
    for field in dataclasses.fields(config.task)
  }
  return dataclasses.replace(
    config,
    iterations=400,
    task=word_sums.RecordedSums(**fields),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=32, group_size=1, recorded_prompts=32
    ),
    update=UpdateConfig(minibatch_prompts=32),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=5e-3),
    evaluation=dataclasses.replace(config.evaluation, every=200),
  )
