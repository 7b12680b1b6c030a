"""Strength of comparisons by several reward models; the weakest are turned.

  python -m experiments.evaluate_reward --reward_model=runs/rm_0
    --data=pairs.jsonl --scores_out=scores_0.jsonl
  python -m experiments.papers.preferences.preference_strength
    --out=turned.jsonl --scored=scores_0.jsonl,scores_1.jsonl,scores_2.jsonl
    --flip=0.1

The first command is run with every model; they were trained on the pairs, in
other orders. The strength of a pair is the mean over models of the score of
the chosen response less that of the rejected one. Of the pairs with the lowest
strength a share --flip is written with chosen and rejected exchanged, and a
share --drop is left out instead; only one of them may be above 0. Rows of --out
are {prompt, chosen, rejected, score_chosen, score_rejected, strength_mean,
strength_std}: scores are means of the models, which reward_model@margin takes
for margins. Prints a line of JSON.
Source: "Secrets of RLHF in Large Language Models Part II: Reward Modeling",
2024, 10 models and 10% of the pairs (by secondary summaries).
"""

import json
import sys
from typing import Any

from absl import app, flags
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.sources import BadRowError


def strength(
  chosen_MN: np.ndarray, rejected_MN: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """(mean, standard deviation with ddof 0) over M models of the gaps, [N].

  Gaps are the score of the chosen response less that of the rejected one. A low
  mean says a wrong label, one near 0 an ambiguous pair.
  Source: "Secrets of RLHF in Large Language Models Part II: Reward Modeling",
  2024 (by secondary summaries; its public trainer has none of this).
  """
  gap_MN = chosen_MN - rejected_MN
  return gap_MN.mean(axis=0), gap_MN.std(axis=0)


def lowest(mean_N: np.ndarray, fraction: float) -> np.ndarray:
  """The pairs of that share with the lowest means, rounded; bool [N].

  Of equal means the earlier pairs.
  """
  count = round(fraction * len(mean_N))
  found = np.zeros(len(mean_N), bool)
  found[np.argsort(mean_N, kind='stable')[:count]] = True
  return found


_SCORED = flags.DEFINE_list(
  'scored', None, 'Files of evaluate_reward --scores_out.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_FLIP = flags.DEFINE_float('flip', 0.1, 'Share that is turned.', 0.0, 1.0)
_DROP = flags.DEFINE_float('drop', 0.0, 'Share that is left out.', 0.0, 1.0)

_TEXTS = ('prompt', 'chosen', 'rejected')
_SCORES = ('score_chosen', 'score_rejected')
_MAX_ROW_BYTES = 10_000_000


def read(paths: list[str]) -> tuple[list[dict[str, str]], np.ndarray]:
  """(texts of the pairs, scores [2, M, N] of chosen and rejected responses).

  Raises:
    BadRowError: a text or a score is missing, with file and row.
    ValueError: two files do not have the same pairs in the same order.
  """
  texts, scores = [], []
  for path in paths:
    own, found = [], []
    rows = rows_lib.read_records(path, 'train', _MAX_ROW_BYTES, None)
    for file, number, record in rows:
      if isinstance(record, BadRowError):
        raise record
      where = f'{file}{number}'
      own.append({n: rows_lib.as_text(record.get(n), n, where) for n in _TEXTS})
      for name in _SCORES:
        value = record.get(name)
        number = isinstance(value, (int, float)) and type(value) is not bool
        if not number or not abs(value) <= sys.float_info.max:
          raise BadRowError(
            where,
            'missing_field',
            f'field {name!r} is {value!r:.80}, no finite number',
          )
      found.append([record[name] for name in _SCORES])
    if texts and texts != own:
      raise ValueError(
        f'--scored: {path} does not have the pairs of {paths[0]} in its order'
      )
    if not own:
      raise ValueError(f'--scored: {path} has no rows')
    texts = own
    scores.append(found)
  return texts, np.asarray(scores, float).transpose(2, 0, 1)


def cleaned(
  texts: list[dict[str, str]], scores: np.ndarray, flip: float, drop: float
) -> list[dict]:
  """The rows to write; scores: [2, M, N]."""
  mean_N, std_N = strength(*scores)
  weak_N = lowest(mean_N, max(flip, drop))
  rows = []
  for n, row in enumerate(texts):
    high, low = (float(x) for x in scores[:, :, n].mean(axis=1))
    found: dict[str, Any] = {
      **row,
      **dict(zip(_SCORES, (high, low), strict=True)),
      'strength_mean': float(mean_N[n]),
      'strength_std': float(std_N[n]),
    }
    if weak_N[n] and drop:
      continue
    if weak_N[n]:
      found |= {'chosen': row['rejected'], 'rejected': row['chosen']}
      found |= {'score_chosen': low, 'score_rejected': high}
      found['strength_mean'] = -found['strength_mean']
    rows.append(found)
  return rows


def main(argv):
  """Writes the file."""
  del argv
  if _FLIP.value and _DROP.value:
    raise app.UsageError(
      f'--flip={_FLIP.value} and --drop={_DROP.value}: one of them must be 0'
    )
  outputs.check_file('out', _OUT.value)
  texts, scores = read(_SCORED.value)
  rows = cleaned(texts, scores, _FLIP.value, _DROP.value)
  outputs.write_rows(_OUT.value, rows)
  mean_N, std_N = strength(*scores)
  found = {
    'pairs': len(texts),
    'written': len(rows),
    'negative': float((mean_N < 0).mean()),
    'strength': float(mean_N.mean()),
    'spread_of_models': float(std_N.mean()),
  }
  print(json.dumps(found))


if __name__ == '__main__':
  configuration.run(main)
