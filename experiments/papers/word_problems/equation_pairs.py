"""Writes prompt/response pairs of one equation each from word problems.

  python -m experiments.papers.word_problems.equation_pairs
    --out=data/equations.jsonl
  python -m experiments.papers.word_problems.equation_pairs
    --config=smollm2_mawps --expression --out=data/expressions.jsonl

Reads the training rows of a configuration, by default of
configs/smollm2_word_problems.py (never the held-out ones). A row whose question
has two numbers a, b with `a op b` equal to its answer, op one of + - * /,
becomes the response ' a op b = answer' to the configuration's prompt, with
--expression ' a op b' and the end of the line; rows with no such pair, or with
several operations that fit, are left out.
"""

import itertools
import json
import operator
import re

from absl import flags

from experiments.flags import configuration

_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_EXPRESSION = flags.DEFINE_bool('expression', False, 'Leave the result out.')

_NUMBER = re.compile(r'\d+(?:\.\d+)?')
_OPERATIONS = {
  '+': operator.add,
  '-': operator.sub,
  '*': operator.mul,
  '/': operator.truediv,
}


def expression(question: str, answer: float) -> str | None:
  """'a op b' if exactly one operation on two numbers has the answer."""
  numbers = _NUMBER.findall(question)
  found = {}
  for a, b in itertools.permutations(numbers, 2):
    for sign, apply in _OPERATIONS.items():
      if sign == '/' and float(b) == 0:
        continue
      if abs(apply(float(a), float(b)) - answer) < 1e-6:
        found.setdefault(sign, f'{a} {sign} {b}')
  return next(iter(found.values())) if len(found) == 1 else None


def main(argv):
  """Writes the pairs and prints their number."""
  del argv
  task = configuration.from_flags().task
  pairs = []
  for index in range(task.num_prompts('train')):
    example = task.example('train', index)
    answer = float(example.answer)
    text = expression(example.meta['question'], answer)
    if text is not None:
      end = '\n' if _EXPRESSION.value else f' = {answer:g}'
      pairs.append({'prompt': example.prompt, 'response': f' {text}{end}'})
  with open(_OUT.value, 'w') as file:
    file.writelines(json.dumps(pair) + '\n' for pair in pairs)
  print(f'{_OUT.value}: {len(pairs)} of {task.num_prompts("train")} rows')


if __name__ == '__main__':
  configuration.define_flags()
  flags.FLAGS.set_default('config', 'smollm2_word_problems')
  configuration.run(main)
