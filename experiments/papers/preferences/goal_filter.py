"""Samples discarded while they are written, by the cosine with a goal.

python -m experiments.papers.preferences.goal_filter --model=runs/gc
  --goals=pairs.jsonl --data=samples.jsonl --out=filtered.jsonl

--goals has pairs; the goal is the mean of the last states of the chosen
responses. --data has {prompt, completion, label}, the samples of prompts and
whether they are right (`papers.worlds.chain_rows --form=samples`), equal ones,
too. A sample is discarded where its cosine falls below a threshold after
max(5, --share of its tokens); the threshold is the largest with which --kept of
the right samples of every second prompt stay. Of the other prompts one line of
JSON is printed and written:
  auroc_25, 50, 75, 100  how well the cosine after that share of the tokens
              tells right samples from wrong ones
  drawn, kept right ones among all samples, and among those that stay
  stays       share of the right samples that stay
  saved       share of the tokens that are not written
  vote, filtered_vote  prompts on which the most frequent answer is right, of
              all samples, and of those that stay (without one: wrong). An
              answer is what comes after the last --mark; of equally frequent
              ones the first counts
  best        prompts whose sample with the largest cosine of its last state is
              right, without discarding; of equal ones the first counts
"""

import collections
from collections.abc import Sequence
import json
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.measures import goal_similarity, row_scores
from rl_jax.records import metrics
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import PreferenceRows

_MODEL = flags.DEFINE_string('model', None, 'Work directory.', required=True)
_GOALS = flags.DEFINE_string('goals', None, 'Pairs, JSONL.', required=True)
_DATA = flags.DEFINE_string('data', None, 'Samples, JSONL.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL of the line.', required=True)
_SHARE = flags.DEFINE_float('share', 0.0, 'Of the tokens.', 0.0, 1.0)
_KEPT = flags.DEFINE_float('kept', 0.9, 'Of right samples.', 0.0, 1.0)
_MARK = flags.DEFINE_string('mark', '>', 'Before an answer.')
_PROMPT = flags.DEFINE_integer('max_prompt_tokens', 64, 'At most.', 1)
_RESPONSE = flags.DEFINE_integer('max_response_tokens', 64, 'At most.', 1)
_BATCH = flags.DEFINE_integer('batch_size', 64, 'Rows at a time.', 1)
SHARES = (25, 50, 75, 100)  # percent of the tokens


def voted(
  rows: Sequence[dict[str, Any]], stays_N: np.ndarray, mark: str
) -> float:
  """The share of prompts whose most frequent answer among what stays is right.

  An answer is right if the first sample that has it is.
  """
  votes: dict[str, collections.Counter[str]] = {}
  right: dict[tuple[str, str], bool] = {}
  for row, stays in zip(rows, stays_N, strict=True):
    own = votes.setdefault(row['prompt'], collections.Counter())
    answer = row['completion'].rpartition(mark)[2]
    right.setdefault((row['prompt'], answer), bool(row['label']))
    if stays:
      own[answer] += 1
  wins = [
    bool(own) and right[prompt, own.most_common(1)[0][0]]
    for prompt, own in votes.items()
  ]
  return float(np.mean(wins))


def best_of(rows: Sequence[dict[str, Any]], score_N: np.ndarray) -> float:
  """The share of prompts whose sample of the largest score is right."""
  best: dict[str, tuple[float, bool]] = {}
  for row, score in zip(rows, score_N.tolist(), strict=True):
    known = best.setdefault(row['prompt'], (score, bool(row['label'])))
    if score > known[0]:
      best[row['prompt']] = score, bool(row['label'])
  return float(np.mean([right for _, right in best.values()]))


def measured(
  rows: Sequence[dict[str, Any]],
  cosine_NT: np.ndarray,
  mask_NT: np.ndarray,
  *,
  share: float,
  kept: float,
  mark: str,
) -> dict[str, float]:
  """The line that is printed; the threshold is of every second prompt."""
  number = {
    x: i for i, x in enumerate(dict.fromkeys(r['prompt'] for r in rows))
  }
  tunes_N = np.array([number[row['prompt']] % 2 == 0 for row in rows])
  right_N = np.array([bool(row['label']) for row in rows])
  lowest_N = goal_similarity.lowest(cosine_NT, mask_NT, share)
  if not (tunes_N & right_N).any() or tunes_N.all():
    raise ValueError('there is no right sample, or one prompt only')
  threshold = goal_similarity.threshold_that_keeps(
    lowest_N[tunes_N & right_N], kept
  )
  test = np.flatnonzero(~tunes_N)
  rows = [rows[i] for i in test.tolist()]
  cosine_NT, mask_NT, right_N = cosine_NT[test], mask_NT[test], right_N[test]
  stays_N, size_N = lowest_N[test] >= threshold, mask_NT.sum(1)
  told = {}
  for percent in SHARES:
    at_N = np.maximum(size_N * percent // 100, 1) - 1
    score_N = cosine_NT[np.arange(len(test)), at_N]
    told[f'auroc_{percent}'] = goal_similarity.auroc(score_N, right_N)
  written_N = goal_similarity.written(cosine_NT, mask_NT, share, threshold)
  return told | {
    'threshold': threshold,
    'drawn': float(right_N.mean()),
    'kept': float(right_N[stays_N].mean()) if stays_N.any() else 0.0,
    'stays': float(stays_N[right_N].mean()) if right_N.any() else 0.0,
    'saved': float(1.0 - written_N.sum() / size_N.sum()),
    'vote': voted(rows, np.ones(len(rows), bool), mark),
    'filtered_vote': voted(rows, stays_N, mark),
    'best': best_of(rows, goal_similarity.last_cosine(cosine_NT, mask_NT)),
  }


def main(argv: Sequence[str]) -> None:
  """Reads states, filters, prints."""
  del argv
  outputs.check_file('out', _OUT.value)
  rows = metrics.read_jsonl(_DATA.value)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  limits = _PROMPT.value, _RESPONSE.value
  with jax.set_mesh(mesh):
    loaded = policy_lib.load_checkpoint(_MODEL.value, mesh)

    def states(path):
      found = row_scores.score_rows(
        loaded,
        PreferenceRows(path=path),
        limits,
        goal_similarity.token_states,
        _BATCH.value,
      )
      return found['state'], found['mask'] > 0

    goal_D = goal_similarity.goal(*states(_GOALS.value))
    state_NTD, mask_NT = states(_DATA.value)
  line = measured(
    rows,
    goal_similarity.cosines(state_NTD, goal_D),
    mask_NT,
    share=_SHARE.value,
    kept=_KEPT.value,
    mark=_MARK.value,
  )
  outputs.write_rows(_OUT.value, [line])
  print(json.dumps(line))


if __name__ == '__main__':
  configuration.run(main)
