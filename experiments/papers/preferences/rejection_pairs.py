"""Pairs among samples that a rejection by scores has accepted (RSO).

python -m experiments.papers.preferences.rejection_pairs --form=candidates
  --workdir=runs/start --out=candidates.jsonl
python -m experiments.evaluate_reward --reward_model=runs/rm
  --data=candidates.jsonl --scores_out=scored.jsonl
python -m experiments.papers.preferences.rejection_pairs --form=pairs
  --scored=scored.jsonl --beta=0.5 --keep=8 --out=pairs.jsonl

candidates  {prompt, chosen, rejected}: the different samples of a prompt in
            one iteration of a run that has logged them (guards.log_rollouts),
            without empty and cut ones; the first of them is
            `chosen`, which only serves the form of `evaluate_reward`
pairs       {prompt, chosen, rejected}: --keep of them accepted by
            `row_selection.accepted` with --beta, drawn into pairs, of which
            the one with the larger score is chosen; equal ones make no pair
"""

from collections.abc import Iterator, Mapping, Sequence
import itertools
import json
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.data import row_selection
from rl_jax.records import metrics

_FORM = flags.DEFINE_enum(
  'form', None, ('candidates', 'pairs'), 'Of rows.', required=True
)
_WORKDIR = flags.DEFINE_string('workdir', '', 'Run with a log of samples.')
_SCORED = flags.DEFINE_string('scored', '', 'Candidates with scores, JSONL.')
_BETA = flags.DEFINE_float('beta', 0.5, 'Temperature of the scores.', 0.0)
_KEEP = flags.DEFINE_integer('keep', 8, 'Accepted samples of a prompt.', 2)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the draws.')
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)

Row = dict[str, Any]


def candidates(samples: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
  """Different finished samples of each group of a log, two at least."""

  def group(sample):
    return sample['step'], sample['prompt']

  for (_, prompt), own in itertools.groupby(samples, group):
    texts = list(
      dict.fromkeys(
        x['response']
        for x in own
        if x['error'] is None and x['ended_by'] is not None and x['response']
      )
    )
    if len(texts) > 1:
      yield {'prompt': prompt, 'chosen': texts[:1], 'rejected': texts[1:]}


def pairs(
  rows: Sequence[Mapping[str, Any]], beta: float, keep: int, seed: int
) -> Iterator[Row]:
  """First-round pairs of the accepted samples of every row."""
  for number, row in enumerate(rows):
    rng = np.random.default_rng((seed, number))
    score_K = np.asarray(row['scores'], np.float64)
    taken = row_selection.accepted(score_K, keep, beta, rng)
    taken = rng.permutation(taken)[: len(taken) // 2 * 2]
    for one, two in taken.reshape(-1, 2):
      if score_K[one] == score_K[two]:
        continue
      best, worst = (one, two) if score_K[one] > score_K[two] else (two, one)
      yield {
        'prompt': row['prompt'],
        'chosen': row['responses'][best],
        'rejected': row['responses'][worst],
      }


def main(argv: Sequence[str]) -> None:
  """Writes the file and prints the number of its rows."""
  del argv
  outputs.check_file('out', _OUT.value)
  if _FORM.value == 'candidates':
    found = list(candidates(log_rows.read(_WORKDIR.value, None)))
  else:
    rows = metrics.read_jsonl(_SCORED.value)
    found = list(pairs(rows, _BETA.value, _KEEP.value, _SEED.value))
  if not found:
    raise ValueError(f'--form={_FORM.value}: no rows')
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'out': _OUT.value, 'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
