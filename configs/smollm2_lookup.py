"""SmolLM2-135M-Instruct looks up similar problems and calculates.

  python -m experiments.train --config=configs/smollm2_lookup.py
    --method=grpo --workdir=runs/lookup

An episode has up to four turns of a line: 'Call: find WORDS' is answered with
the most similar of other problems and its answer (BM25, extra 'search'), 'Call:
3 + 5' with the value, and 'Answer: 8' ends it. In all else it is
configs/smollm2_calculator.py. The same with tools that take their time:
configs/smollm2_slow_lookup.py.

Data: as of configs/smollm2_mawps.py; what is looked up is
data/mawps_addsub.jsonl.
Cost and expected numbers: docs/performance.md.
"""

import dataclasses
import functools
import json

from configs import smollm2_calculator
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import MarkedCalls, PlainTemplate
from rl_jax.tasks.environments import calculator_tool, tool_makers

PROBLEMS = 'data/mawps_addsub.jsonl'
SHOWN = 90  # characters of a problem that was found
SHOTS = """\
Question: Tom has 3 pens. He buys 5 more. How many pens has Tom?
Call: find pens buys more
Result: Kim had 4 pens and got 2 more. How many pens has Kim? 6
Call: 3 + 5
Result: 8
Answer: 8

Question: Ann had 9 figs and ate 4. How many figs are left?
Call: find figs ate left
Result: Bob had 7 pies. He ate 5. How many pies are left? 2
Call: 9 - 4
Result: 5
Answer: 5

Question: {question}
"""


def ask(request: str) -> str:
  """Finds a similar problem, or computes a value.

  Args:
    request: 'find' and words, or an arithmetic expression
  """
  verb, _, words = request.partition(' ')
  if verb != 'find':
    return calculator_tool.calculator(request)
  found = tool_makers.ranked(_problems(), words, 1)
  return _problems()[found[0]] if found else 'nothing was found'


@functools.cache
def _problems():
  with open(PROBLEMS, encoding='utf-8') as lines:
    rows = [json.loads(line) for line in lines]
  return tuple(
    f'{" ".join(row["input"].split())[-SHOWN:]} {row["target"]:g}'
    for row in rows
  )


def get_config(method: Method) -> ExperimentConfig:
  """4 prompts x 4 samples of up to four turns."""
  base = smollm2_calculator.get_config(method)
  own = dataclasses.replace(base.task.task, template=PlainTemplate(text=SHOTS))
  return dataclasses.replace(
    base,
    iterations=6,
    task=dataclasses.replace(
      base.task,
      task=own,
      functions=('configs.smollm2_lookup:ask',),
      form=MarkedCalls(tool='ask', argument='request'),
      turn_seconds=60.0,  # the first search of a worker makes the index
      stateless=True,
      pure=('ask',),
    ),
    rollout=dataclasses.replace(
      base.rollout,
      num_prompts=4,
      group_size=4,
      temperature=0.7,
      max_prompt_tokens=288,
      max_response_tokens=224,
      turns=TurnConfig(
        max_turns=4, max_turn_tokens=16, max_observation_tokens=52
      ),
    ),
    verifier=dataclasses.replace(
      base.verifier, num_workers=None, timeout_seconds=90.0
    ),
  )
