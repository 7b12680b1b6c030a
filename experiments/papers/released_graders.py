"""Grades responses as released code does.

  python -m experiments.papers.released_graders --checkouts=FOLDER

reads lines {"grader", "text", "golds"} and writes lines {"right"}, or
{"error"}. Its file runs in an environment with the packages verl, lm-eval,
math-verify, pylatexenc, word2number and regex (the first two without what they
depend on); nothing of this package is imported. FOLDER holds the checkouts of
graders that are in no package, named as their repositories.
"""

import argparse
from collections.abc import Callable, Sequence
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import types
from typing import Any

Grader = Callable[[str, Sequence[str]], bool]
CHECKOUTS = ''


def module_at(path: str, name: str = '') -> Any:
  """The module in a file, without the packages around it.

  name: that it has, for modules that import their neighbours.
  """
  name = name or 'graded_' + re.sub(r'\W', '_', path)
  spec = importlib.util.spec_from_file_location(name, path)
  if spec is None or spec.loader is None or not os.path.exists(path):
    raise FileNotFoundError(path)
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  spec.loader.exec_module(module)
  return module


def package_at(folder: str, name: str) -> None:
  """Makes the files of a folder importable as NAME.FILE."""
  package = types.ModuleType(name)
  package.__path__ = [folder]
  sys.modules[name] = package


@functools.cache
def _verl(file):
  place = importlib.metadata.distribution('verl').locate_file('')
  return module_at(f'{place}/verl/utils/reward_score/{file}.py')


def _checkout(*path):
  return os.path.join(CHECKOUTS, *path)


@functools.cache
def _oat():
  path = ('understand-r1-zero', 'understand_r1_zero', 'math_grader.py')
  return module_at(_checkout(*path))


@functools.cache
def _entropy():
  folder = ('Entropy-Mechanism-of-RL', 'verl', 'utils', 'reward_score')
  package_at(_checkout(*folder), 'entropy')
  return importlib.import_module('entropy.prime_math')


@functools.cache
def _deepscaler():
  folder = ('DisCO', 'deepscaler', 'deepscaler', 'rewards', 'math_utils')
  return module_at(_checkout(*folder, 'utils.py'))


@functools.cache
def _simplerl():
  folder = ('simpleRL-reason', 'verl', 'utils', 'reward_score')
  package_at(_checkout(*folder), 'simplerl')
  return importlib.import_module('simplerl.hf_math_verify')


@functools.cache
def _empo():
  folder = ('EMPO', 'verl-empo', 'verl', 'utils', 'reward_score')
  # The module makes a client of a served model, which is never called here.
  sys.modules.setdefault('openai', types.ModuleType('openai'))
  sys.modules['openai'].OpenAI = object  # pyrefly: ignore
  return module_at(_checkout(*folder, 'empo_verify.py'))


def verl_gsm8k(text, golds):
  """The strict form of verl's score of GSM8K."""
  return bool(_verl('gsm8k').compute_score(text, golds[0]))


def verl_math(text, golds):
  """verl's score of MATH."""
  return bool(_verl('math_reward').compute_score(text, golds[0]))


def verl_math_dapo(text, golds):
  """verl's score of DAPO-Math-17k."""
  return bool(_verl('math_dapo').compute_score(text, golds[0])['acc'])


def verl_math_verify(text, golds):
  """verl's call of math-verify."""
  # What its pool of processes runs; a module found by its path has no pool.
  judge = _verl('math_verify')._verify_in_subprocess
  return bool(judge(f'\\boxed{{{golds[0]}}}', text))


def oat(text, golds):
  """The grader of Oat-Zero, as in its evaluation."""
  return bool(_oat().boxed_reward_fn(text, list(golds), fast=False)[1])


def oat_fast(text, golds):
  """The grader of Oat-Zero, as in training without math-verify."""
  return bool(_oat().boxed_reward_fn(text, list(golds), fast=True)[1])


def entropy_mechanism(text, golds):
  """The score of all sets in the repository of Clip-Cov and KL-Cov."""
  return bool(_entropy().compute_score(text, golds[0])['score'])


def disco(text, golds):
  """DeepScaleR's reward in DisCO: after </think>, MATHD or SymPy."""
  after = text.split('</think>')
  utils = _deepscaler()
  found = utils.extract_answer(after[1]) if len(after) > 1 else None
  return found is not None and any(
    utils.grade_answer_mathd(found, gold)
    or utils.grade_answer_sympy(found, gold)
    for gold in golds
  )


def simplerl(text, golds):
  """SimpleRL-Zoo's reward: the extraction of Qwen, then math-verify."""
  module = _simplerl()
  found, _ = module.extract_solution(text)
  if '\\boxed' not in found:
    found = f'\\boxed{{{found}}}'
  gold = f'\\boxed{{{golds[0]}}}'
  return bool(module.hf_verify_with_try(gold=gold, target=found))


def empo(text, golds):
  """EMPO's reward with labels, without its served model."""
  module = _empo()
  found = module.solution2answer(text, num_answers=1)[0]
  right = module.solution2answer(golds[0], return_origin=True)[0]
  return bool(found) and bool(module.grade_single_answer(found, right))


def spo(text, golds):
  """SPO's score of GSM8K in its original format."""
  return bool(
    _spo().grade_answer(
      given_answer=_spo().extract_predicted_answer_from_text(text),
      ground_truth=golds[0],
    )
  )


@functools.cache
def _spo():
  """The task, without the framework around it."""

  class Task:
    def __init__(self, **fields):
      del fields

    @staticmethod
    def register(*_, **__):
      return lambda found: found

  treetune = types.ModuleType('treetune')
  logging = types.SimpleNamespace(get_logger=lambda name: None)
  treetune.logging_utils = logging  # pyrefly: ignore
  tasks = types.ModuleType('treetune.tasks')
  tasks.Task = Task  # pyrefly: ignore
  sys.modules |= {'treetune': treetune, 'treetune.tasks': tasks}
  path = _checkout('SPO', 'src', 'treetune', 'tasks', 'gsm8k.py')
  return module_at(path).GSM8K(use_original_format=True)


def lm_eval_gsm8k(text, golds):
  """GSM8K of lm-eval, filter strict-match."""
  return _lm_eval_gsm8k(text, golds[0], '#### (\\-?[0-9\\.\\,]+)', 0)


def lm_eval_gsm8k_flexible(text, golds):
  """GSM8K of lm-eval, filter flexible-extract."""
  pattern = '(-?[$0-9.,]{2,})|(-?[0-9]+)'
  return _lm_eval_gsm8k(text, golds[0], pattern, -1)


def _lm_eval_gsm8k(text, gold, pattern, which):
  """The filter and the metric with the settings of gsm8k.yaml."""
  metrics = importlib.import_module('lm_eval.api.metrics')
  filters = importlib.import_module('lm_eval.filters.extraction')
  found = filters.RegexFilter(pattern, which).apply([[text]], [{}])[0][0]
  ignored = [',', '\\$', '(?s).*#### ', '\\.$']
  score = metrics.exact_match_hf_evaluate(
    [found], [f'#### {gold}'], regexes_to_ignore=ignored, ignore_case=True
  )
  return bool(score['exact_match'])


def lm_eval_math(text, golds):
  """MATH of lm-eval: the text between the first and the last dollar sign."""
  solution = f'\\boxed{{{golds[0]}}}'
  found = _hendrycks().process_results({'solution': solution}, [text])
  return bool(found['exact_match'])


@functools.cache
def _hendrycks():
  place = importlib.metadata.distribution('lm-eval').locate_file('')
  return module_at(f'{place}/lm_eval/tasks/hendrycks_math/utils.py')


GRADERS: dict[str, Grader] = {
  one.__name__: one
  for one in (
    *(verl_gsm8k, verl_math, verl_math_dapo, verl_math_verify),
    *(oat, oat_fast, entropy_mechanism, disco, simplerl, empo, spo),
    *(lm_eval_gsm8k, lm_eval_gsm8k_flexible, lm_eval_math),
  )
}


def grade(line: dict[str, Any]) -> dict[str, Any]:
  """Returns the verdict of a grader, or why there is none."""
  try:
    found = GRADERS[line['grader']](line['text'], line['golds'])
    return {'right': found}
  except Exception as error:  # of code that is not ours
    return {'error': f'{type(error).__name__}: {error}'[:200]}


def main() -> None:
  """Grades the lines of standard input."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--checkouts', default='')
  global CHECKOUTS
  CHECKOUTS = parser.parse_args().checkouts
  out, sys.stdout = sys.stdout, sys.stderr  # graders print
  for line in sys.stdin:
    print(json.dumps(grade(json.loads(line))), file=out, flush=True)


if __name__ == '__main__':
  main()
