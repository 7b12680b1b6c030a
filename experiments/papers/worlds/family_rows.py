"""Writes a pool of rows of worlds.Families, for experiments.select_rows.

python -m experiments.papers.worlds.family_rows
  --config=configs/worlds/families.py --set=task.wrong=0.3 --out=pool.jsonl

A row is {prompt, completion, family, wrong, difficulty}: what the teacher
writes for a prompt of the train split, whether it is wrong, and the number of
digits, which stands for the difficulty that a judge would give.
"""

from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from rl_jax.worlds import Families

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is Families.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
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
  outputs.write_rows(_OUT.value, rows(config.task))
  print(f'{_OUT.value}: {config.task.num_train} rows')


if __name__ == '__main__':
  configuration.run(main)
