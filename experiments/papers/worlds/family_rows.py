"""Writes a pool of rows of worlds.Families, for experiments.select_rows.

python -m experiments.papers.worlds.family_rows
  --config=configs/worlds/families.py --set=task.wrong=0.3 --out=pool.jsonl

A row is {prompt, completion, family, wrong, difficulty}: what the teacher
writes for a prompt of the train split, whether it is wrong, and the number of
digits, which stands for the difficulty that a judge would give.

With --drift rows are pairs {prompt, chosen, rejected, semantic_distance, wrong}
for Sem-DPO: the right answer and the same with one wrong digit; of that share
of the pairs the chosen response is the right answer to another prompt instead,
which `wrong` says. The distance of a chosen response from its prompt is the
share of its digits that the prompt has not, 0 for right answers of the families
c, r, s and d.
"""

import collections
import dataclasses
from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from rl_jax.tasks import draws
from rl_jax.worlds import Families

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is Families.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
_DRIFT = flags.DEFINE_float(
  'drift', None, 'Pairs, of which so many have drifted.', 0.0, 1.0
)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)


def rows(task: Families) -> list[dict[str, Any]]:
  """The rows of the train split, in order."""
  examples = (task.example('train', i) for i in range(task.num_train))
  return [
    {
      'prompt': example.prompt,
      'completion': task.target(example),
      'family': example.meta['family'],
      'wrong': task.is_wrong(example),
      'difficulty': len(example.answer.split(' ')),
    }
    for example in examples
  ]


def pairs(task: Families, drift: float) -> list[dict[str, Any]]:
  """A pair for each prompt of the train split, in order."""
  count, wrong = task.num_train, dataclasses.replace(task, wrong=1.0)
  found = []
  for index in range(count):
    example = task.example('train', index)
    stream = draws.Draws('drifted pairs', task.seed, index)
    drifted = stream.uniform() < drift
    other = task.example('train', stream.below(count)) if drifted else example
    found.append(
      {
        'prompt': example.prompt,
        'chosen': other.answer,
        'rejected': wrong.target(example),
        'semantic_distance': distance(example.prompt, other.answer),
        'wrong': drifted,
      }
    )
  return found


def distance(prompt: str, response: str) -> float:
  """The share of the digits of a response that the prompt has not."""
  asked, said = (
    collections.Counter(x for x in text if x.isdigit())
    for text in (prompt, response)
  )
  return (said - asked).total() / max(said.total(), 1)


def main(argv):
  """Writes the file."""
  del argv
  outputs.check_file('out', _OUT.value)
  config = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value))
  if not isinstance(config.task, Families):
    raise ValueError(
      f'--config={_CONFIG.value} has the task {type(config.task).__name__}: '
      'expected Families'
    )
  task, drift = config.task, _DRIFT.value
  outputs.write_rows(
    _OUT.value, rows(task) if drift is None else pairs(task, drift)
  )
  print(f'{_OUT.value}: {config.task.num_train} rows')


if __name__ == '__main__':
  configuration.run(main)
