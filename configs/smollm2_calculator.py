"""SmolLM2-135M-Instruct calls a calculator, reads its result, then answers.

  python -m experiments.train --config=configs/smollm2_calculator.py
    --method=grpo --workdir=runs/calculator_llm

An episode has two turns: the line 'Call: 3 + 5', to which the calculator adds
'Result: 8', and the line 'Answer: 8'. A first line without a call is the
answer, so whether to call is the policy's choice. Four worked examples are the
prompt; all weights, float32, no warm start, no reference policy. The same model
without the tool: configs/smollm2_equations.py.

Data: as of configs/smollm2_mawps.py.
Cost and expected numbers: experiments/papers/word_problems/README.md.
"""

import dataclasses
import re

from configs import smollm2_mawps
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import MarkedCalls, PlainTemplate, WithTools, expressions
from rl_jax.worlds.word_problems import EXPRESSION_SHOTS

SHOT = 'Call: {expression}\nResult: {value}\nAnswer: {value}'


def get_config(method: Method) -> ExperimentConfig:
  """A call of at most 13 tokens, its result of at most 10, the answer."""
  base = smollm2_mawps.get_config(method)
  own = dataclasses.replace(
    base.task,
    template=PlainTemplate(text=worked(SHOT, '')),
    extract='first_line_last_number',
    verifier='decimal',
  )
  return dataclasses.replace(
    base,
    iterations=18,
    task=WithTools(task=own, form=MarkedCalls(), shown='none'),
    rollout=dataclasses.replace(
      base.rollout,
      max_prompt_tokens=228,
      max_response_tokens=32,
      turns=TurnConfig(
        max_turns=2, max_turn_tokens=13, max_observation_tokens=10
      ),
    ),
    update=dataclasses.replace(
      base.update, minibatch_prompts=4, microbatch_prompts=4
    ),
    evaluation=dataclasses.replace(base.evaluation, every=0),
  )


def worked(shot: str, opening: str) -> str:
  """EXPRESSION_SHOTS with other answers; the prompt ends with `opening`."""

  def answer(match):
    value = expressions.evaluate(match[1])[0]
    return shot.format(expression=match[1], value=value)

  shots = re.sub(r'Answer: (.+)', answer, EXPRESSION_SHOTS)
  return shots.removesuffix('Answer:') + opening
