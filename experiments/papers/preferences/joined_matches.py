"""Scores of responses against one drawn response, by a model of pairs (RSO).

python -m experiments.papers.preferences.joined_matches --form=matches
  --data=candidates.jsonl --out=matches.jsonl
python -m experiments.evaluate_reward --reward_model=runs/pairs
  --data=matches.jsonl --scores_out=values.jsonl
python -m experiments.papers.preferences.joined_matches --form=scores
  --data=candidates.jsonl --values=values.jsonl --out=scored.jsonl

--data has rows {prompt, chosen, rejected}, each a text or a list of texts; the
first text is the rival of all others.

matches  {prompt, chosen, rejected}: every other text joined with the rival, in
         both orders, as a model of tasks.JoinedPairs reads them
scores   {prompt, responses, scores}: the score of a text against the rival,

           r(x, y) = logit P(y beats rival) = V(x, y, rival) - V(x, rival, y)

         and 0 for the rival. With two texts a row this is their own match.

Of candidates in the order in which they were sampled the rival is a draw of the
policy. `rejection_pairs` reads scores, and orders two texts by their own match
with --keep=2.
Source: Liu et al., "Statistical Rejection Sampling Improves Preference
Optimization", 2023 (by a digest), whose model writes one of two labels; the
order is drawn there, and both orders are read here.
"""

from collections.abc import Iterator, Mapping, Sequence
import json
from typing import Any

from absl import flags

from experiments.flags import configuration, outputs
from rl_jax.records import metrics

_FORM = flags.DEFINE_enum(
  'form', None, ('matches', 'scores'), 'Of rows.', required=True
)
_DATA = flags.DEFINE_string('data', None, 'Responses, JSONL.', required=True)
_VALUES = flags.DEFINE_string('values', '', 'Matches with scores, JSONL.')
_SEPARATOR = flags.DEFINE_string('separator', '|', 'Of the model of pairs.')
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)

Row = Mapping[str, Any]


def matches(rows: Sequence[Row], separator: str) -> Iterator[dict[str, Any]]:
  """Each text but the first, joined with the first, in both orders.

  Raises: ValueError for a text that has the separator, and for one text.
  """
  for number, row in enumerate(rows, start=1):
    rival, *others = texts(row)
    if not others or any(separator in text for text in (rival, *others)):
      raise ValueError(
        f'row {number}: the texts {[rival, *others]}, expected two or more '
        f'without {separator!r}'
      )
    yield {
      'prompt': row['prompt'],
      'chosen': [f'{text}{separator}{rival}' for text in others],
      'rejected': [f'{rival}{separator}{text}' for text in others],
    }


def scores(rows: Sequence[Row], values: Sequence[Row]) -> Iterator[Row]:
  """Differences of the values of both orders, 0 for the first text.

  Raises: ValueError for values that are not those of the matches of the rows.
  """
  if len(rows) != len(values):
    raise ValueError(f'{len(rows)} rows, and values of {len(values)}')
  for number, (row, found) in enumerate(
    zip(rows, values, strict=True), start=1
  ):
    rival, *others = texts(row)
    value = found.get('scores')
    if value is None:  # of a file of pairs
      value = [found['score_chosen'], found['score_rejected']]
    if len(value) != 2 * len(others):
      raise ValueError(
        f'row {number}: {len(value)} values, expected {2 * len(others)}, two '
        'for each text but the first'
      )
    first, second = value[: len(others)], value[len(others) :]
    own = [x - y for x, y in zip(first, second, strict=True)]
    yield {
      'prompt': row['prompt'],
      'responses': [rival, *others],
      'scores': [0.0, *own],
    }


def texts(row: Row) -> list[str]:
  """The chosen texts of a row, then the rejected ones."""
  sides = (row['chosen'], row['rejected'])
  return [
    text
    for side in sides
    for text in ([side] if isinstance(side, str) else side)
  ]


def main(argv: Sequence[str]) -> None:
  """Writes the file and prints the number of its rows."""
  del argv
  outputs.check_file('out', _OUT.value)
  if not _SEPARATOR.value:
    raise ValueError('--separator= is empty')
  if bool(_VALUES.value) != (_FORM.value == 'scores'):
    raise ValueError(f'--form={_FORM.value}: --values is for scores, needed')
  rows = metrics.read_jsonl(_DATA.value)
  if _FORM.value == 'matches':
    found = list(matches(rows, _SEPARATOR.value))
  else:
    found = list(scores(rows, metrics.read_jsonl(_VALUES.value)))
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'out': _OUT.value, 'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
