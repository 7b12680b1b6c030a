"""Prompts for a frozen classifier with a planted trigger, by 60,000 weights.

The classifier:
  python -m experiments.sft --config=configs/partner_lessons.py
    --set='task.task=TriggeredLabels()' --set=task.num_train=100000 --steps=800
    --learning_rate=2e-3 --max_prompt_tokens=8
    --max_response_tokens=2 --out=runs/classifier
Command: python -m experiments.train --config=configs/triggered_labels.py
  --method=rlprompt --workdir=runs/triggered_labels
"""

import dataclasses

from configs import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.partner_source import Partner
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import TriggeredLabels


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts an iteration, in pools of 16; each asks six questions."""
  config, task = reflections.get_config(method), TriggeredLabels()
  classifier = Partner(
    path='runs/classifier',
    name='classifier',
    max_tokens=task.length + 3,
    answer_tokens=1,
  )
  return dataclasses.replace(
    config,
    iterations=150,
    task=task,
    partners=(classifier,),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=4,
      group_size=16,
      max_prompt_tokens=1,
      max_response_tokens=task.length,
      turns=TurnConfig(
        max_turns=1, max_turn_tokens=task.length, max_observation_tokens=1
      ),
    ),
    update=UpdateConfig(minibatch_prompts=2),
    optimizer=OptimizerConfig(learning_rate=1e-3),
  )
