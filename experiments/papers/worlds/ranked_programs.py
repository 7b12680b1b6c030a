"""The best of several sampled programs, by what a value-based policy says.

python -m experiments.papers.worlds.ranked_programs --model=runs/b_coder
  --data=programs.jsonl --alpha=0.1 --out=ranked.jsonl

--data has rows {prompt, completion, label} of `experiments.rollout_rows
--form=label`: different programs for each prompt, and whether they are right.
Prints one line of JSON: the share of prompts whose best program is right, by
the score of B-Coder (`ranked`), by the log-probability of the program
(`likeliest`), of programs drawn alike (`drawn`), and of prompts with a right
program (`any`); prompts with one program only are left out. --out has {prompt,
completion, label, score, logp} of all.
"""

from collections.abc import Mapping, Sequence
import functools
import json
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.measures import row_scores
from rl_jax.records import metrics
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import PreferenceRows

_MODEL = flags.DEFINE_string('model', None, 'Work directory.', required=True)
_DATA = flags.DEFINE_string('data', None, 'Programs, JSONL.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL of scores.', required=True)
_ALPHA = flags.DEFINE_float('alpha', 1.0, 'Of DuelingQ.', 1e-12, 1e12)
_GAMMA = flags.DEFINE_float('gamma', 1.0, 'Discount per token.', 0.0, 1.0)
_PROMPT = flags.DEFINE_integer('max_prompt_tokens', 64, 'At most.', 1)
_RESPONSE = flags.DEFINE_integer('max_response_tokens', 64, 'At most.', 1)
_BATCH = flags.DEFINE_integer('batch_size', 64, 'Rows at a time.', 1)


def chosen(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
  """The shares of prompts whose chosen program is right."""
  by_prompt: dict[str, list[Mapping[str, Any]]] = {}
  for row in rows:
    by_prompt.setdefault(row['prompt'], []).append(row)
  groups = [own for own in by_prompt.values() if len(own) > 1]
  if not groups:
    raise ValueError('there is no prompt with two different programs')

  def best(key: str):
    picked = [max(own, key=lambda row: row[key]) for own in groups]
    return float(np.mean([row['label'] for row in picked]))

  return {
    'prompts': len(groups),
    'ranked': best('score'),
    'likeliest': best('logp'),
    'drawn': float(
      np.mean([np.mean([row['label'] for row in own]) for own in groups])
    ),
    'any': best('label'),
  }


def main(argv):
  """Scores and prints."""
  del argv
  outputs.check_file('out', _OUT.value)
  rows = metrics.read_jsonl(_DATA.value)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  scorer = functools.partial(
    row_scores.ranking_scores, alpha=_ALPHA.value, gamma=_GAMMA.value
  )
  with jax.set_mesh(mesh):
    loaded = policy_lib.load_checkpoint(_MODEL.value, mesh)
    if not loaded[0].value_head:
      raise ValueError(f'--model={_MODEL.value} has no value head')
    found = row_scores.score_rows(
      loaded,
      PreferenceRows(path=_DATA.value),
      (_PROMPT.value, _RESPONSE.value),
      scorer,
      _BATCH.value,
    )
  scores, logps = found['score'].tolist(), found['logp'].tolist()
  scored = [
    {**row, 'score': score, 'logp': logp}
    for row, score, logp in zip(rows, scores, logps, strict=True)
  ]
  outputs.write_rows(_OUT.value, scored)
  print(json.dumps({'out': _OUT.value, **chosen(scored)}))


if __name__ == '__main__':
  configuration.run(main)
