"""Prompts that ask for a behaviour before the answer, and their rewards."""

from collections.abc import Callable
import functools
import re

from rl_jax.tasks.base import Example

# The content that is asked for, by its tag.
BEHAVIOURS = {
  'think': 'the reasoning that leads to the answer, step by step',
  'plan': 'a plan of the steps that solve the problem',
  'code': 'Python code that solves the problem',
  'knowledge': 'the definitions, formulas and facts that the problem needs',
  'examples': 'examples or counterexamples that help to solve the problem',
}


def instruction(tag: str) -> str:
  """The text before a question, `{question}`, for a tag of BEHAVIOURS."""
  return (
    f'First write {BEHAVIOURS[tag]} between <{tag}> and </{tag}>. Then write '
    'the answer only, between <answer> and </answer>.\n\n{question}'
  )


@functools.cache
def _form(tag: str) -> Callable[[Example, str], float]:
  marks = [f'<{end}{name}>' for name in (tag, 'answer') for end in ('', '/')]
  form = re.compile(
    rf'\s*<{tag}>.*</{tag}>\s*<answer>.*</answer>\s*', re.DOTALL
  )

  def reward(example: Example, response: str) -> float:
    text = example.prefill + response
    once = all(text.count(mark) == 1 for mark in marks)
    return float(once and form.fullmatch(text) is not None)

  return reward


def think(example: Example, response: str) -> float:
  """1 for one <think> and one <answer> after it, and nothing outside of both.

  A reward function, as `plan`, `code`, `knowledge` and `examples`:
  `--reward=rl_jax.tasks.prior_prompts:think=0.5 --reward=task=0.5`.
  Source: "Prior Prompt Engineering for Reinforcement Fine-Tuning", by a
  summary; the words of the instructions are ours.
  """
  return _form('think')(example, response)


def plan(example: Example, response: str) -> float:
  """The same as `think`, for <plan>."""
  return _form('plan')(example, response)


def code(example: Example, response: str) -> float:
  """The same as `think`, for <code>."""
  return _form('code')(example, response)


def knowledge(example: Example, response: str) -> float:
  """The same as `think`, for <knowledge>."""
  return _form('knowledge')(example, response)


def examples(example: Example, response: str) -> float:
  """The same as `think`, for <examples>."""
  return _form('examples')(example, response)
