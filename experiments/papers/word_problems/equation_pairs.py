"""Writes prompt/response pairs of one equation each from word problems.

  python -m experiments.papers.word_problems.equation_pairs
    --out=data/equations.jsonl

Reads the training rows of configs/smollm2_word_problems.py (never the held-out
ones). A row whose question has two numbers a, b with `a op b` equal to its
answer, op one of + - * /, becomes the response ' a op b = answer' to the
configuration's prompt; rows with no such pair, or with several operations that
fit, are left out.
"""

import itertools
import json
import operator
import re

from absl import flags

from experiments.flags import configuration

_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)

_NUMBER = re.compile(r'\d+(?:\.\d+)?')
_OPERATIONS = {
  '+': operator.add,
  '-': operator.sub,
  '*': operator.mul,
  '/': operator.truediv,
}


def equation(question: str, answer: float) -> str | None:
  """'a op b = answer' if exactly one operation on two numbers fits."""
  numbers = _NUMBER.findall(question)
  found = {}
  for a, b in itertools.permutations(numbers, 2):
    for sign, apply in _OPERATIONS.items():
      if sign == '/' and float(b) == 0:
        continue
      if abs(apply(float(a), float(b)) - answer) < 1e-6:
        found.setdefault(sign, f'{a} {sign} {b} = {answer:g}')
  return next(iter(found.values())) if len(found) == 1 else None


def main(argv):
  """Writes the pairs and prints their number."""
  del argv
  task = configuration.from_flags().task
  pairs = []
  for index in range(task.num_prompts('train')):
    example = task.example('train', index)
    text = equation(example.meta['question'], float(example.answer))
    if text is not None:
      pairs.append({'prompt': example.prompt, 'response': ' ' + text})
  with open(_OUT.value, 'w') as file:
    file.writelines(json.dumps(pair) + '\n' for pair in pairs)
  print(f'{_OUT.value}: {len(pairs)} of {task.num_prompts("train")} rows')


if __name__ == '__main__':
  configuration.define_flags()
  flags.FLAGS.set_default('config', 'smollm2_word_problems')
  configuration.run(main)
