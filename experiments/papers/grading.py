"""Our graders beside released ones: on right answers and made-up responses."""

import collections
from collections.abc import Iterator, Sequence
import dataclasses
import json
import os
import pathlib
import subprocess
from typing import Any

from experiments.flags import configuration
from experiments.papers import (
  benchmarks,
  data_files,
  made_up,
  reasons,
)
from experiments.papers import recipe as recipe_lib
from experiments.papers.recipe import DataSource
from rl_jax.tasks import PlainTemplate, QuestionAnswer

RESULTS = str(configuration.ROOT / 'experiments' / 'papers' / 'agreement.json')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
  """A released grader, the fields of ours, and the files that both judge.

  released: in released_graders.GRADERS. style: of made_up.MARKS. of: where the
  released one is read. sources: names of data sources.
  """

  released: str
  of: str
  sources: tuple[str, ...]
  style: str = 'boxed'
  extract: str = 'boxed'
  verifier: str = 'math'
  last_characters: int | None = None


_OAT = (
  'oat_aime',
  'oat_amc',
  'oat_math',
  'oat_minerva',
  'oat_olympiad',
)
_SIMPLERL = ('aime24', 'amc23', 'math500', 'minerva', 'olympiadbench')
COMPARISONS = (
  Comparison(
    released='verl_gsm8k',
    of='verl 0.9.1, reward_score/gsm8k.py',
    sources=('verl_gsm8k_test',),
    style='hash',
    extract='hash_number',
    verifier='text',
    last_characters=300,
  ),
  Comparison(
    released='spo',
    of='AIFrameResearch/SPO @ b9fc6a26, tasks/gsm8k.py',
    sources=('verl_gsm8k_test',),
    style='hash',
    extract='hash',
    verifier='decimal',
  ),
  Comparison(
    released='lm_eval_gsm8k',
    of='lm-eval 0.4.13, gsm8k.yaml, strict-match',
    sources=('verl_gsm8k_test',),
    style='hash',
    extract='hash_number',
    verifier='text',
  ),
  Comparison(
    released='lm_eval_gsm8k_flexible',
    of='lm-eval 0.4.13, gsm8k.yaml, flexible-extract',
    sources=('verl_gsm8k_test',),
    style='hash',
    extract='last_number',
    verifier='decimal',
  ),
  Comparison(
    released='lm_eval_math',
    of='lm-eval 0.4.13, hendrycks_math',
    sources=('verl_math_test',),
    style='dollars',
    extract='whole',
  ),
  Comparison(
    released='verl_math',
    of='verl 0.9.1, reward_score/math_reward.py',
    sources=('verl_math_test', 'math500'),
  ),
  Comparison(
    released='verl_math_verify',
    of='verl 0.9.1, reward_score/math_verify.py, math-verify 0.9.0',
    sources=('roll_benchmarks', 'roll_deepmath', *_SIMPLERL),
  ),
  Comparison(
    released='verl_math_dapo',
    of='verl 0.9.1, reward_score/math_dapo.py',
    sources=('dapo_aime24', 'aime25', 'amc83'),
    style='line',
    extract='answer_line',
    verifier='math',
    last_characters=300,
  ),
  Comparison(
    released='oat',
    of='sail-sg/understand-r1-zero @ dfca49dd, math_grader.py, fast=False',
    sources=_OAT,
  ),
  Comparison(
    released='oat_fast',
    of='sail-sg/understand-r1-zero @ dfca49dd, math_grader.py, fast=True',
    sources=_OAT,
  ),
  Comparison(
    released='entropy_mechanism',
    of='PRIME-RL/Entropy-Mechanism-of-RL @ 88505792, reward_score/prime_math',
    sources=('aime24', 'aime25', 'amc83', *_SIMPLERL[2:]),
  ),
  Comparison(
    released='disco',
    of='Optimization-AI/DisCO @ bd2b0781, deepscaler/rewards/math_utils',
    sources=(
      *('disco_aime24', 'aime25', 'amc83', 'disco_math500'),
      *('disco_minerva', 'disco_olympiad'),
    ),
    style='think',
    extract='boxed_after_think',
  ),
  Comparison(
    released='simplerl',
    of='hkust-nlp/simpleRL-reason @ cf1c7858, reward_score/hf_math_verify.py',
    sources=_SIMPLERL,
    extract='boxed_or_last_number',
  ),
  Comparison(
    released='empo',
    of='QingyangZhang/EMPO @ c5eccd40, reward_score/empo_verify.py',
    sources=(
      *('empo_math500', 'minerva', 'empo_olympiad', 'empo_aime24'),
      'empo_amc23',
    ),
  ),
)


def sources() -> dict[str, DataSource]:
  """All public files that recipes and comparisons read, by name."""
  found = {
    source.name: source
    for name in recipe_lib.names()
    for source in recipe_lib.load(name).sources
  }
  return found | {source.name: source for source in benchmarks.OTHERS}


def ours(comparison: Comparison, file: str) -> QuestionAnswer:
  """The grader of this package that is compared."""
  return QuestionAnswer(
    sources={'test': file},
    extract=comparison.extract,
    verifier=comparison.verifier,
    last_characters=comparison.last_characters,
    bad_rows='skip',
  )


def judged(comparison, file: str, rows: int) -> Iterator[dict[str, Any]]:
  """Made-up responses to the first problems of a file, with our verdict."""
  task = ours(comparison, file)
  count = task.num_prompts('test')
  golds = [_golds(task.example('test', i)) for i in range(count)]
  for i, right in enumerate(golds[:rows]):
    example = task.example('test', i)
    wrong = _wrong(golds, i)
    for form, text in made_up.responses(right[0], wrong, comparison.style):
      yield {
        'grader': comparison.released,
        'file': os.path.basename(file),
        'row': i,
        'form': form,
        'text': text,
        'golds': right,
        'ours': task.reward(example, text)['outcome'] == 1.0,
      }


def _golds(example):
  return list(example.meta.get('answers', (example.answer,)))


def _wrong(golds, i):
  """The right answer of the next row that has another one."""
  for k in range(1, len(golds)):
    other = golds[(i + k) % len(golds)][0]
    if other not in golds[i]:
      return other
  return '0'


def golds_accepted(
  task: QuestionAnswer, file: str
) -> tuple[int, int, list[str]]:
  """(right answers, rows that are not read, what is not accepted) of a file.

  A right answer must be right in the mark that the task looks for.
  """
  task = dataclasses.replace(
    task,
    sources={'test': file},
    num_rows={},
    template=PlainTemplate(),
    bad_rows='skip',
  )
  style = made_up.STYLES[task.extract]
  refused, total = [], 0
  for i in range(task.num_prompts('test')):
    example = task.example('test', i)
    for gold in example.meta.get('answers', (example.answer,)):
      total += 1
      response = made_up.marked(gold, style)
      if task.reward(example, response)['outcome'] != 1.0:
        refused.append(gold)
  return total, sum(task.skipped('test').values()), refused


def own_graders() -> Iterator[tuple[str, QuestionAnswer]]:
  """(source, task) of every file that a recipe's own grader judges.

  Recipes whose rows are judged by a function of their own are left out.
  """
  seen = set()
  for paper in recipe_lib.names():
    recipe = recipe_lib.load(paper)
    config = recipe_lib.experiment(paper, next(iter(recipe.rows)))
    sets = {one.name: one.task for one in config.evaluation.sets}
    tasks = {recipe.data[0].name: config.task} if recipe.data else {}
    tasks |= {recipe.evaluation[name].data.name: x for name, x in sets.items()}
    for source, task in tasks.items():
      if not isinstance(task, QuestionAnswer) or not task.answer:
        continue
      key = (source, task.extract, task.verifier, task.last_characters)
      if key not in seen:
        seen.add(key)
        yield source, task
  for source in benchmarks.OTHERS:
    task = QuestionAnswer(
      sources={'test': source.file}, extract='boxed', verifier='math'
    )
    yield source.name, task


def count_golds(folder: str) -> list[dict[str, Any]]:
  """A line for every file, with what its grader does not accept."""
  known, lines = sources(), []
  for name, task in own_graders():
    source = known[name]
    line = {
      'file': name,
      'from': f'{source.repository} @ {source.revision[:8]}',
      'extract': task.extract,
      'verifier': task.verifier,
    }
    if data_files.read_manifest(source, folder) is None:
      lines.append(line | {'missing': True})
      continue
    rows = data_files.places(source, folder).rows
    total, unread, refused = golds_accepted(task, rows)
    lines.append(line | {'golds': total, 'unread': unread, 'refused': refused})
  return lines


def compare(
  comparison: Comparison, folder: str, rows: int, command: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
  """(counts of a comparison, the responses on which the graders differ)."""
  known, found = sources(), []
  for name in comparison.sources:
    source = known[name]
    if data_files.read_manifest(source, folder) is not None:
      file = data_files.places(source, folder).rows
      found += judged(comparison, file, rows)
  verdicts = released(found, command)
  line: dict[str, Any] = {
    **dataclasses.asdict(comparison),
    'responses': len(found),
    'errors': sum('error' in one for one in verdicts),
  }
  differing = []
  for given, verdict in zip(found, verdicts, strict=True):
    # What a released grader cannot judge is wrong there.
    theirs = verdict.get('right', False)
    if theirs != given['ours']:
      only = 'ours' if given['ours'] else 'released'
      reason = reasons.why(comparison.released, given['form'], only)
      differing.append({**given, 'only': only, 'reason': reason})
  by_reason = collections.Counter(
    f'{one["reason"]} ({one["only"]}: {one["form"]})' for one in differing
  )
  line['differences'] = dict(by_reason.most_common())
  return line, differing


def released(
  responses: Sequence[dict[str, Any]], command: Sequence[str]
) -> list[dict[str, Any]]:
  """The verdicts of released code, which runs in another process.

  Raises: RuntimeError with the end of what it printed.
  """
  asked = [
    json.dumps({name: one[name] for name in ('grader', 'text', 'golds')})
    for one in responses
  ]
  done = subprocess.run(
    command,
    input=''.join(f'{line}\n' for line in asked),
    capture_output=True,
    text=True,
  )
  found = [json.loads(line) for line in done.stdout.splitlines()]
  if done.returncode or len(found) != len(asked):
    raise RuntimeError(f'{" ".join(command)}: {done.stderr[-2000:]}')
  return found


def results() -> dict[str, Any]:
  """The committed results."""
  return json.loads(pathlib.Path(RESULTS).read_text(encoding='utf-8'))
