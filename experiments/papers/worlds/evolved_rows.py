"""Prompts of worlds.Families that a creator has rewritten: a pool that grows.

python -m experiments.papers.worlds.evolved_rows --form=grown
  --pool=pool.jsonl --creator=runs/creator_samples --out=grown.jsonl

Rows of a pool are {prompt, completion, family, difficulty, parent}: the right
answer, and the prompt that was rewritten, null for those of the beginning.
  start    rewritings of the prompts of --pool by a rule, one each, as rows
           {prompt, completion} that a creator learns first: one more digit, one
           less, or another family
  grown    --pool and what the run --creator has written for prompts of it: each
           new prompt that is well formed, once
  batch    only the new prompts, and as many others of --pool, drawn
  lessons  the rewritings in --pool, as rows of `start`, whose outcomes in
           --outcomes (`experiments.evaluate --out`, several samples of each
           row) are not all equal: a creator learns what was informative. Where
           there is none, those of `start`
"""

from collections.abc import Sequence
import json
import re
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.data import row_selection
from rl_jax.records import metrics
from rl_jax.tasks import draws
from rl_jax.worlds import families

FORMS = ('start', 'grown', 'batch', 'lessons')
MOST_DIGITS = 9
_PROMPT = re.compile(rf'([crsdim]) (\d(?: \d){{1,{MOST_DIGITS - 1}}})=')

_FORM = flags.DEFINE_enum(
  'form', None, FORMS, 'What is written.', required=True
)
_POOL = flags.DEFINE_string('pool', None, 'JSONL file.', required=True)
_CREATOR = flags.DEFINE_string('creator', '', 'Run that wrote prompts.')
_OUTCOMES = flags.DEFINE_string('outcomes', '', 'Of evaluate --out.')
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_SEED = flags.DEFINE_integer('seed', 0, 'Of rewriting and batches.', 0)

# The input that a form reads beside the pool.
_NEEDS = {'start': None, 'grown': 'creator', 'batch': 'creator'}
_NEEDS |= {'lessons': 'outcomes'}

Row = dict[str, Any]


def row_of(prompt: str, parent: str | None) -> Row | None:
  """The row of a prompt with its right answer; None if it is malformed."""
  match = _PROMPT.fullmatch(prompt)
  if match is None:
    return None
  family, digits = match[1], match[2].replace(' ', '')
  return {
    'prompt': prompt,
    'completion': ' '.join(families.answer(family, digits)),
    'family': family,
    'difficulty': len(digits),
    'parent': parent,
  }


def rewritten(prompt: str, seed: int) -> str:
  """One more digit, one less (of three at least), or another family."""
  stream = draws.Draws('evolved rows', seed, prompt)
  family, *digits = prompt.removesuffix('=').split(' ')
  step = stream.below(3)
  if step == 0 and len(digits) < MOST_DIGITS:
    digits.append(str(stream.below(10)))
  elif step == 1 and len(digits) > 2:
    digits.pop()
  else:
    family = stream.choice([x for x in 'crsdim' if x != family])
  return ' '.join([family, *digits]) + '='


def grown(pool: Sequence[Row], written: Sequence[Row]) -> list[Row]:
  """The pool and the new well-formed prompts of a log, in its order."""
  found = {row['prompt']: row for row in pool}
  for sample in written:
    row = row_of(sample['response'], sample['prompt'])
    if row is not None:
      found.setdefault(row['prompt'], row)
  return list(found.values())


def batch(pool: Sequence[Row], written: Sequence[Row], seed: int) -> list[Row]:
  """The new prompts of a log, and as many of the pool, drawn; of a log without
  new ones the pool.
  """
  new = grown(pool, written)[len(pool) :]
  places = np.random.default_rng(seed).permutation(len(pool))
  own = sorted(places[: len(new)] if new else places)
  return [*new, *(pool[place] for place in own)]


def lessons(pool: Sequence[Row], samples: Sequence[Any]) -> list[Row]:
  """The rewritings of the pool whose outcomes differ.

  samples: the outcomes of each row; null where one was not judged.
  Raises: ValueError if they are not those of the pool.
  """
  if len(samples) != len(pool):
    raise ValueError(
      f'--outcomes has {len(samples)} rows, --pool {len(pool)}: evaluate all '
      'of them (--limit)'
    )
  outcomes = [[np.nan if x is None else x for x in own] for own in samples]
  spread_N = row_selection.informativeness(np.array(outcomes))
  return [
    {'prompt': row['parent'], 'completion': row['prompt']}
    for row, spread in zip(pool, spread_N, strict=True)
    if row.get('parent') is not None and spread > 0
  ]


def start(pool: Sequence[Row], seed: int) -> list[Row]:
  """A rewriting by the rule of every prompt of the pool."""
  prompts = [row['prompt'] for row in pool]
  return [{'prompt': x, 'completion': rewritten(x, seed)} for x in prompts]


def main(argv):
  """Writes the file and prints the number of its rows."""
  del argv
  form = _FORM.value
  for flag in ('creator', 'outcomes'):
    given = flags.FLAGS[flag].value != ''
    if given != (flag == _NEEDS[form]):
      raise ValueError(
        f'--form={form} with {"" if given else "no "}--{flag}: it needs '
        f'{_NEEDS[form] or "none of these"}'
      )
  outputs.check_file('out', _OUT.value)
  pool = metrics.read_jsonl(_POOL.value)
  if form == 'start':
    rows = start(pool, _SEED.value)
  elif form == 'lessons':
    with open(_OUTCOMES.value) as file:
      rows = lessons(pool, json.load(file)['samples'])
    rows = rows or start(pool, _SEED.value)
  else:
    written = log_rows.read(_CREATOR.value, None)
    rows = grown(pool, written)
    if form == 'batch':
      rows = batch(pool, written, _SEED.value)
  if not rows:
    raise ValueError(f'--form={form}: no rows')
  outputs.write_rows(_OUT.value, rows)
  digits = [row.get('difficulty', 0) for row in rows]
  mean = sum(digits) / len(rows)
  print(json.dumps({'out': _OUT.value, 'rows': len(rows), 'digits': mean}))


if __name__ == '__main__':
  configuration.run(main)
