"""Rows of an adapter: lessons, rewards of its words, and the advice they make.

  python -m experiments.papers.episodes.advice_rows --form=lessons
    --out=lessons.jsonl
  python -m experiments.papers.episodes.advice_rows --form=table
    --workdir=runs/agent --out=table.jsonl
  python -m experiments.papers.episodes.advice_rows --form=advice
    --table=table.jsonl --answers=answers.json --out=advice.jsonl

Situations and sub-goals are those of worlds.GuidedKeyDoor. An adapter writes an
analysis of a situation, 'k', 'd' or 'g': what is missing. A frozen adviser
(`adviser`) names the sub-goal that the analysis says, if that is what is
missing, and else one that a hash of both says.
  lessons  {prompt, completion}: every situation with an analysis that is drawn
  table    {prompt, scores, completion}: the situations with the mean of
           `followed` after the sub-goal that each analysis leads to, in the
           --last iterations of a run that has logged episodes; of sub-goals
           that it did not have there the mean of all. completion: the right
           analysis
  advice   {situation, subgoal} for GuidedKeyDoor.path: what the adviser makes
           of the analyses that a model has written for the table (--answers,
           of `experiments.evaluate --out`)
Prints a line of JSON; for `advice` with the share of right analyses.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
import json
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.records import metrics
from rl_jax.tasks import draws
from rl_jax.worlds import GuidedKeyDoor
from rl_jax.worlds.guided_key_door import FIRST, SITUATIONS, SUBGOALS
from rl_jax.worlds.key_door_words import HOLDS

ANALYSES = SUBGOALS.lower()
_FORM = flags.DEFINE_enum(
  'form', None, ('lessons', 'table', 'advice'), 'Of rows.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_SEED = flags.DEFINE_integer('seed', 0, 'Of lessons.')
_WORKDIR = flags.DEFINE_string('workdir', '', 'Run with a log of episodes.')
_LAST = flags.DEFINE_integer('last', 10, 'Iterations of it.', 1)
_TABLE = flags.DEFINE_string('table', '', 'JSONL.')
_ANSWERS = flags.DEFINE_string('answers', '', 'JSON of a model.')

Segment = tuple[
  str, str, float
]  # situation, sub-goal, how well it was followed


def missing(situation: str) -> str:
  """The right analysis."""
  return ANALYSES[HOLDS.index(situation[0])]


def adviser(situation: str, analysis: str) -> str:
  """The sub-goal that a frozen adviser names."""
  right = missing(situation)
  if analysis == right:
    return right.upper()
  return draws.Draws('adviser', situation, analysis).choice(SUBGOALS)


def lessons(seed: int) -> list[dict[str, str]]:
  """A drawn analysis of every situation."""
  stream = draws.Draws('advice lessons', seed)
  return [
    {'prompt': f'{x}:', 'completion': stream.choice(ANALYSES)}
    for x in SITUATIONS
  ]


def segments(
  samples: Iterable[dict[str, Any]], stride: int
) -> Iterator[Segment]:
  """The strides of logged episodes that have ended.

  Every turn has the sub-goal under which it was written, before the last mark
  of its observation.
  """
  for sample in samples:
    turns = sample.get('turns', ())
    for start in range(0, len(turns), stride):
      own = turns[start : start + stride]
      followed = own[-1].get('rewards', {}).get('followed', 0.0)
      if not followed:  # the limit of turns has cut the stride
        continue
      situation = FIRST
      if start:
        before = turns[start - 1]
        mark = '-+'[before['rewards']['followed'] > 0.5]
        _, _, holds = ast.literal_eval(own[0]['state'])  # as logs write it
        situation = HOLDS[holds] + before['observation'][-2] + mark
      yield situation, own[0]['observation'][-2], followed


def table(found: Sequence[Segment]) -> list[dict[str, Any]]:
  """A row for each situation that occurs, in the order of SITUATIONS.

  Raises: ValueError without a segment.
  """
  if not found:
    raise ValueError('the log has no stride of an episode with sub-goals')
  by_pair: dict[tuple[str, str], list[float]] = {}
  for situation, subgoal, followed in found:
    by_pair.setdefault((situation, subgoal), []).append(followed)
  every = float(np.mean([x for _, _, x in found]))

  def score(situation, analysis):
    own = by_pair.get((situation, adviser(situation, analysis)))
    return float(np.mean(own)) if own else every

  known = {situation for situation, _ in by_pair}
  return [
    {
      'prompt': f'{x}:',
      'scores': {a: score(x, a) for a in ANALYSES},
      'completion': missing(x),
    }
    for x in SITUATIONS
    if x in known
  ]


def advice(
  rows: Sequence[dict[str, Any]], answers: Sequence[str]
) -> tuple[list[dict[str, str]], float]:
  """(sub-goals by situation, the share of right analyses).

  Raises: ValueError unless there is an answer for every row.
  """
  if len(rows) != len(answers):
    raise ValueError(f'{len(rows)} situations and {len(answers)} analyses')
  situations = [row['prompt'].removesuffix(':') for row in rows]
  pairs = list(zip(situations, answers, strict=True))
  found = [{'situation': x, 'subgoal': adviser(x, a)} for x, a in pairs]
  return found, float(np.mean([missing(x) == a for x, a in pairs]))


def main(argv: Sequence[str]) -> None:
  """Writes the file."""
  del argv
  outputs.check_file('out', _OUT.value)
  about: dict[str, Any] = {'out': _OUT.value}
  found: list[dict[str, Any]]
  if _FORM.value == 'lessons':
    found = list(lessons(_SEED.value))
  elif _FORM.value == 'table':
    samples = log_rows.read(_WORKDIR.value, _LAST.value)
    found = table(list(segments(samples, GuidedKeyDoor().stride)))
  else:
    with open(_ANSWERS.value) as file:
      answers = json.load(file)['responses']
    rows = metrics.read_jsonl(_TABLE.value)
    found, about['right'] = advice(rows, answers)
  outputs.write_rows(_OUT.value, found)
  print(json.dumps(about | {'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
