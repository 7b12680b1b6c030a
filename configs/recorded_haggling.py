"""Dialogues of scripted buyers, played on held-out sellers.

Command: python -m experiments.train --config=configs/recorded_haggling.py
  --method=sft --workdir=runs/haggling_start
"""

import dataclasses

from configs import haggling
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.tasks import RecordedHaggling


def get_config(method: Method) -> ExperimentConfig:
  """64 dialogues a step; as many episodes of held-out sellers are played."""
  config = haggling.get_config(method)
  return dataclasses.replace(
    config,
    iterations=300,
    task=RecordedHaggling(),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=64, logged_prompts=64, group_size=1
    ),
    update=UpdateConfig(minibatch_prompts=64),
    evaluation=dataclasses.replace(config.evaluation, every=100),
  )
