"""Two-step sums by a decomposer that asks a frozen solver of one-step sums.

The solver is that of configs/partner_lessons.py, runs/solver.
Command: python -m experiments.train --config=configs/two_step_sums.py
  --method=grpo --workdir=runs/two_step_sums
Cost: about 3 minutes on 2 CPU cores.
Expected: not measured yet.
"""

import dataclasses

from configs import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.models.partner_source import Partner
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import TwoStepSums


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
