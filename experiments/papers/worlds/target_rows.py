"""Writes what the teacher of a task says to the first prompts, as rows.

python -m experiments.papers.worlds.target_rows
  --config=configs/worlds/calculator.py --limit=1000 --out=pool.jsonl

A row is {prompt, completion}, of the train split in its order, as
`experiments.evaluate --split=train --limit` takes them.
"""

from absl import flags

from experiments.flags import configuration, fields, outputs
from rl_jax.tasks.base import Task

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task has targets.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
_LIMIT = flags.DEFINE_integer('limit', 1000, 'At most so many rows.', 1)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)


def rows(task: Task, limit: int) -> list[dict[str, str]]:
  """The first rows of the train split."""
  count = min(limit, task.num_prompts('train'))
  examples = (task.example('train', i) for i in range(count))
  return [{'prompt': x.prompt, 'completion': task.target(x)} for x in examples]


def main(argv):
  """Writes the file."""
  del argv
  outputs.check_file('out', _OUT.value)
  config = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value))
  if not config.task.supports('target'):
    raise ValueError(
      f'--config={_CONFIG.value} has the task {type(config.task).__name__}, '
      'which has no targets'
    )
  found = rows(config.task, _LIMIT.value)
  outputs.write_rows(_OUT.value, found)
  print(f'{_OUT.value}: {len(found)} rows')


if __name__ == '__main__':
  configuration.run(main)
