"""Prompts for a frozen classifier with a planted trigger, by 60,000 weights.

The classifier:
  python -m experiments.sft --config=configs/worlds/partner_lessons.py
    --set='task.task=TriggeredLabels()' --set=task.num_train=100000 --steps=800
    --learning_rate=2e-3 --max_prompt_tokens=8 --max_response_tokens=2
    --out=runs/classifier
Command: python -m experiments.train --config=configs/worlds/triggered_labels.py
  --method=rlprompt --workdir=runs/triggered_labels
Cost: 20 seconds of a CPU core, as much for the classifier.
Expected: over seeds 0 to 4, in the last 15 of 150 iterations, 93 +- 2% of the
  prompts have the trigger, and the mean gap is 0.96 +- 0.01. Without z-scores
  (credit.GroupCenter and credit.GroupScale null, the reward divided by 100) 13
  +- 5% have it, 80 [73, 87] points less in pairs. With the plain gap
  (task.reward_weights={'gap': 1.0}) 93 +- 2%: after z-scores the two slopes of
  200 and 180 change nothing.
"""

import dataclasses

from configs.worlds import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.partner_source import Partner
from rl_jax.worlds import TriggeredLabels


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
