"""Two-step sums by a decomposer that asks a frozen solver of one-step sums.

Solver and first decomposer are those of configs/worlds/partner_lessons.py,
runs/solver and runs/decomposer.
Command: python -m experiments.train --config=configs/worlds/two_step_sums.py
  --method=grpo --set=model.path=runs/decomposer --workdir=runs/two_step_sums
Cost: about a minute on 2 CPU cores.
Expected: over five seeds the answers of solver and decomposer are right in 9%
  of samples before training and 97 +- 2% in the last 15 iterations; the solver
  by itself has 6%. The greedy first decomposer already writes 97% of its
  lessons as they are. Without it (model.path left out) 8 +- 3%: two operators
  without numbers, '+;+', earn the part of operations, and no sample finds more.
"""

import dataclasses

from configs.worlds import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.models.partner_source import Partner
from rl_jax.worlds import TwoStepSums


def get_config(method: Method) -> ExperimentConfig:
  """256 problems an iteration; each asks the solver three questions."""
  config = reflections.get_config(method)
  solver = Partner(
    path='runs/solver', name='solver', max_tokens=24, answer_tokens=4
  )
  return dataclasses.replace(
    config,
    iterations=150,
    task=TwoStepSums(),
    partners=(solver,),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=12,
      max_response_tokens=9,
      turns=TurnConfig(
        max_turns=1, max_turn_tokens=9, max_observation_tokens=1
      ),
    ),
  )
