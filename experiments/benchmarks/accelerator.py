"""Measures one cell of the accelerator table, or prints the table.

  python -m experiments.benchmarks.accelerator --preset=qwen2p5_1p5b \
    --stage=update --rows=64 --out=lines.jsonl
  python -m experiments.benchmarks.accelerator --table=lines.jsonl

experiments/accelerator.sh runs all cells within its time. Each appends one JSON
line; what cannot be measured appends its reason instead.
"""

import dataclasses
import json

from absl import app, flags

from experiments.benchmarks import accelerator_table
from rl_jax.planning.costs import Shape

_SYSTEM = flags.DEFINE_enum(
  'system', 'rl_jax', ['rl_jax', 'torch'], 'Whose cell was --skipped.'
)
_PRESET = flags.DEFINE_string('preset', 'tiny', 'Model; see accelerator_cells.')
_STAGE = flags.DEFINE_enum('stage', 'generate', ['generate', 'update'], '')
_ROWS = flags.DEFINE_integer(
  'rows', 64, 'Responses, in groups of --group_size.'
)
_GROUP = flags.DEFINE_integer('group_size', 8, 'Rows a prompt.')
_PROMPT = flags.DEFINE_integer('prompt_tokens', 128, 'Tokens of a prompt.')
_NEW = flags.DEFINE_integer('new_tokens', 128, 'Tokens of a response.')
_MICROBATCH = flags.DEFINE_integer('microbatch_rows', 64, 'Rows at once.')
_REPEATS = flags.DEFINE_integer('repeats', 3, 'Timed calls after a first one.')
_OUT = flags.DEFINE_string('out', None, 'File that gets the line.')
_SKIPPED = flags.DEFINE_string('skipped', None, 'Reason: only writes it down.')
_TABLE = flags.DEFINE_string('table', None, 'Prints the table of such lines.')


def _measured(shape: Shape) -> dict:
  if _SKIPPED.value:
    return {'skipped': _SKIPPED.value}
  from experiments.benchmarks import (
    accelerator_cells,  # a reason needs no device
  )

  return accelerator_cells.measure(
    _PRESET.value, _STAGE.value, shape, _REPEATS.value, _MICROBATCH.value
  )


def main(argv):
  """One line, or the table."""
  del argv
  if _TABLE.value:
    print(accelerator_table.table(accelerator_table.read(_TABLE.value)))
    return
  groups = max(1, _ROWS.value // _GROUP.value)
  shape = Shape(groups, _GROUP.value, _PROMPT.value, _NEW.value)
  line = json.dumps(
    {
      'system': _SYSTEM.value,
      'preset': _PRESET.value,
      'stage': _STAGE.value,
      'rows': shape.rows,
      **dataclasses.asdict(shape),
      **_measured(shape),
    }
  )
  print(line)
  if _OUT.value:
    with open(_OUT.value, 'a', encoding='utf-8') as file:
      file.write(line + '\n')


if __name__ == '__main__':
  app.run(main)
