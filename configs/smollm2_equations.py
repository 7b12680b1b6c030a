"""configs/smollm2_calculator.py without the tool: ' 3 + 5 = 8' in one turn.

  python -m experiments.train --config=configs/smollm2_equations.py
    --method=grpo --workdir=runs/equations_llm

Cost and expected numbers: experiments/papers/word_problems/README.md.
"""

import dataclasses

from configs import smollm2_calculator
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import PlainTemplate


def get_config(method: Method) -> ExperimentConfig:
  """One turn of at most 16 tokens; the last number counts."""
  base = smollm2_calculator.get_config(method)
  shots = smollm2_calculator.worked('Answer: {expression} = {value}', 'Answer:')
  return dataclasses.replace(
    base,
    rollout=dataclasses.replace(
      base.rollout, max_prompt_tokens=200, max_response_tokens=16, turns=None
    ),
    task=dataclasses.replace(
      base.task.task, template=PlainTemplate(text=shots)
    ),
  )
