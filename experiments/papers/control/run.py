"""Measures a row of the page of control, five seeds in one program.

  python -m experiments.papers.control.run --row=dpt
  python -m experiments.papers.control.run --row=lamo_llm --model=DIR

Prints each metric by arm, mean and 95% interval over seeds (Student's t), and
what they say of the claims, which were named before the first run. --scale
multiplies the number of updates. --out keeps the result as one JSON line.
Cost: one to five minutes on two CPU cores, see the page.
"""

from collections.abc import Sequence
import json
import time
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from experiments.papers.control import page
from experiments.papers.control.claims import Results, Row
from experiments.papers.control.rows import ROWS

_ROW = flags.DEFINE_enum(
  'row', None, tuple(ROWS), 'Of the page.', required=True
)
_SEEDS = flags.DEFINE_integer(
  'seeds',
  None,
  'From 0; without it as many as the page has.',
  lower_bound=1,
  upper_bound=100,
)
_MODEL = flags.DEFINE_string(
  'model',
  None,
  'For the row lamo_llm: a directory of a language model, ours or that of '
  'Hugging Face, or a .gguf file.',
)
_SCALE = flags.DEFINE_float(
  'scale', 1.0, 'Factor on the number of updates.', lower_bound=1e-3
)
_OUT = flags.DEFINE_string('out', None, 'File that gets a further line.')


def line(name: str, row: Row, results: Results, cost: Any) -> dict[str, Any]:
  """The JSON line of a result."""
  values = {
    metric: {
      arm: [round(float(x), 5) for x in np.asarray(value_S)]
      for arm, value_S in arms.items()
    }
    for metric, arms in results.items()
  }
  verdicts = {claim.text: claim.verdict(values) for claim in row.claims}
  return {'row': name, **cost, 'verdicts': verdicts, 'values': values}


def main(argv: Sequence[str]) -> None:
  """Prints the table and the verdicts."""
  del argv
  if _OUT.value is not None:
    outputs.check_file('out', _OUT.value)
  row = ROWS[_ROW.value]
  wall, cpu = time.monotonic(), time.process_time()
  seeds = row.seeds if _SEEDS.value is None else _SEEDS.value
  key_S = jax.random.split(jax.random.key(0), seeds)
  results = row.results(key_S, _SCALE.value, _MODEL.value)
  cost = {
    'seeds': seeds,
    'scale': _SCALE.value,
    'wall_s': round(time.monotonic() - wall),
    'cpu_s': round(time.process_time() - cpu),
  }
  found = line(_ROW.value, row, results, cost)
  print(f'{row.title}: {cost}\n\n{page.table(found["values"])}\n')
  for text, verdict in found['verdicts'].items():
    print(f'- {text}: {verdict}')
  if _OUT.value is not None:
    with open(_OUT.value, 'a', encoding='utf-8') as file:
      file.write(json.dumps(found) + '\n')


if __name__ == '__main__':
  configuration.run(main)
