"""SmolLM2-135M-Instruct solves word problems of a verifiers environment.

  python -m experiments.train --config=configs/smollm2_guesses.py
    --method=grpo --workdir=runs/guesses

An episode has up to four turns: a wrong answer is said to be too low or too
high, a right one ends it. The rubric is the package's own for mathematics. The
same with answers that take their time:
--set=task.environment=configs.smollm2_guesses:slow_environment.

Data: as of configs/smollm2_mawps.py. Needs the extra 'verifiers'.
Cost and expected numbers: docs/performance.md.
"""

import asyncio
import dataclasses
import json
import random
import re

from configs import smollm2_mawps
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import Verifiers

PROBLEMS = 'data/mawps_singleop.jsonl'
HELD_OUT = 100  # the last ones
MEAN_SECONDS, SPREAD, MOST_SECONDS = 5.0, 1.0, 30.0  # of a slow answer
SYSTEM = 'Answer with a number and nothing else.'
SHOTS = (
  ('Tom has 3 pens. He buys 5 more. How many pens has Tom?', '8'),
  ('Ann had 9 figs and ate 4. How many figs are left?', '5'),
)


def environment(slow: bool = False):
  """The environment; slow: its answers take five seconds in the mean."""
  import datasets
  import verifiers

  class Guesses(verifiers.MultiTurnEnv):
    """Says whether an answer is too low or too high."""

    async def env_response(self, messages, state, **kwargs):
      """The hint, or the end."""
      del kwargs
      if slow:
        await asyncio.sleep(delay([state['answer'], len(messages)]))
      said, right = number(messages[-1]['content']), float(state['answer'])
      if said and float(said) == right:
        end = [{'role': 'user', 'content': 'Right.'}]
        state['final_env_response'] = end
        return end
      hint = 'No number.'
      if said:
        hint = 'Too low.' if float(said) < right else 'Too high.'
      return [{'role': 'user', 'content': f'{hint} Try again.'}]

  with open(PROBLEMS, encoding='utf-8') as lines:
    rows = [json.loads(line) for line in lines]
  rows = [
    {'question': row['input'], 'answer': f'{row["target"]:g}'} for row in rows
  ]
  shots = [
    {'role': role, 'content': text}
    for shot in SHOTS
    for role, text in zip(('user', 'assistant'), shot, strict=True)
  ]
  return Guesses(
    dataset=datasets.Dataset.from_list(rows[:-HELD_OUT]),
    eval_dataset=datasets.Dataset.from_list(rows[-HELD_OUT:]),
    system_prompt=SYSTEM,
    few_shot=shots,
    rubric=verifiers.MathRubric(parser=verifiers.Parser(number)),
    max_turns=4,
  )


def slow_environment():
  """The same, with answers that take their time."""
  return environment(slow=True)


def number(text: str) -> str:
  """The last number of a text, '' without one."""
  found = re.findall(r'-?\d+(?:\.\d+)?', text)
  return found[-1] if found else ''


def delay(key: object) -> float:
  """Seconds, by a lognormal law; a function of the key."""
  draw = random.Random(json.dumps(key)).lognormvariate(-(SPREAD**2) / 2, SPREAD)
  return min(MOST_SECONDS, MEAN_SECONDS * draw)


def get_config(method: Method) -> ExperimentConfig:
  """4 prompts x 4 samples of up to four turns."""
  base = smollm2_mawps.get_config(method)
  return dataclasses.replace(
    base,
    iterations=6,
    task=Verifiers(environment='configs.smollm2_guesses:environment'),
    rollout=dataclasses.replace(
      base.rollout,
      num_prompts=4,
      group_size=4,
      stop=(),
      max_prompt_tokens=192,
      max_response_tokens=144,
      turns=TurnConfig(
        max_turns=4, max_turn_tokens=12, max_observation_tokens=32
      ),
    ),
    update=dataclasses.replace(
      base.update, minibatch_prompts=4, microbatch_prompts=4
    ),
    evaluation=dataclasses.replace(base.evaluation, every=0),
    verifier=dataclasses.replace(
      base.verifier, num_workers=None, timeout_seconds=3 * MOST_SECONDS
    ),
  )
