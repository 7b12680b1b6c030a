"""Small partners for environments that ask: decoders of 83,000 parameters.

  python -m experiments.sft --config=configs/worlds/partner_lessons.py
    --max_prompt_tokens=24 --max_response_tokens=8 --stop_accuracy=0.99
    --out=runs/solver
  python -m experiments.sft --config=configs/worlds/partner_lessons.py
    --set='task.task=HintedKeywords()' --max_prompt_tokens=24
    --max_response_tokens=8 --stop_accuracy=0.97 --out=runs/writer
  python -m experiments.sft --config=configs/worlds/partner_lessons.py
    --set='task.task=Decompositions()' --max_prompt_tokens=24
    --max_response_tokens=8 --stop_accuracy=0.5 --evaluate_every=20
    --out=runs/decomposer
The last one is not a partner, but where the policy that asks the solver begins.
Cost: half a minute (solver, decomposer) or one (writer) on 2 CPU cores.
Expected: with seed 0 the solver has 100% of held-out lessons after 200 steps,
  the writer more than 97% after 900.
"""

import dataclasses

from configs.worlds import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import PartnerLessons, TwoStepSums


def get_config(method: Method) -> ExperimentConfig:
  """The solver of configs/worlds/two_step_sums.py; only `sft` trains it."""
  config = reflections.get_config(method)
  return dataclasses.replace(
    config,
    task=PartnerLessons(TwoStepSums()),
    rollout=dataclasses.replace(config.rollout, turns=None),
  )
