"""Rows of data from the samples that a run has logged."""

from collections.abc import Iterable, Iterator, Sequence
import itertools
import math
import os
from typing import Any

from rl_jax.records import metrics

FORMS = ('pair', 'label', 'scores', 'response', 'text')
# Of a line, which has more.
KEYS = frozenset(('step', 'prompt', 'response', 'reward', 'error'))


def read(workdir: str, last: int | None) -> list[dict[str, Any]]:
  """The lines of a log, of the last so many iterations; None: all.

  Raises: ValueError naming a line that is not a sample.
  """
  path = os.path.join(workdir, metrics.ROLLOUTS)
  samples = metrics.read_jsonl(path)
  for number, sample in enumerate(samples, 1):
    if not (isinstance(sample, dict) and sample.keys() >= KEYS):
      raise ValueError(f'{path}:{number} lacks one of {sorted(KEYS)}')
  if last and samples:
    after = samples[-1]['step'] - last
    samples = [sample for sample in samples if sample['step'] > after]
  return samples


def rows(
  samples: Sequence[dict[str, Any]],
  form: str,
  least: float,
  chat: bool,
  shorter: bool = False,
) -> Iterator[dict[str, Any]]:
  """The rows of one log, in its order; samples: its lines.

  Raises: ValueError for an episode of several turns.
  """

  def turn(role, text):
    return [{'role': role, 'content': text}] if chat else text

  for (_, prompt), every in _groups(samples):
    group = [x for x in every if judged(x) and _said(x)]
    asked = turn('user', prompt)
    right = [_said(x) for x in group if x['reward'] >= least]
    if form == 'text':
      yield from ({'text': prompt + text} for text in right)
    elif form == 'label':
      for x in group:
        said, good = turn('assistant', _said(x)), x['reward'] >= least
        yield {'prompt': asked, 'completion': said, 'label': good}
    elif form == 'response':
      said = (turn('assistant', text) for text in right)
      yield from ({'prompt': asked, 'completion': text} for text in said)
    elif form == 'scores':
      if len(group) == len(every) > 1:
        said = [turn('assistant', _said(x)) for x in group]
        scores = [x['reward'] for x in group]
        yield {'prompt': asked, 'responses': said, 'scores': scores}
    else:
      pair = (_shorter if shorter else _extremes)(group, least)
      if pair is not None:
        texts = [turn('assistant', text) for text in pair]
        yield {'prompt': asked, 'chosen': texts[0], 'rejected': texts[1]}


def judged(sample: dict[str, Any]) -> bool:
  """False for rows that failed, and for windows that wait for their group."""
  return sample['error'] is None and math.isfinite(sample['reward'])


def _extremes(group, least):
  """(best, worst) by reward; None unless only the best is right."""
  if not group:
    return None
  best, worst = (f(group, key=_reward) for f in (max, min))
  right = worst['reward'] < least <= best['reward']
  return (_said(best), _said(worst)) if right else None


def _shorter(group, least):
  """(shortest right, longest wrong), None unless the former is shorter."""
  right = [_said(x) for x in group if x['reward'] >= least]
  wrong = [_said(x) for x in group if x['reward'] < least]
  if not (right and wrong):
    return None
  chosen, rejected = min(right, key=len), max(wrong, key=len)
  return (chosen, rejected) if len(chosen) < len(rejected) else None


def _groups(samples: Iterable[dict[str, Any]]):
  """((iteration, prompt), samples): those of a prompt follow each other."""

  def key(sample):
    return (sample['step'], sample['prompt'])

  return ((k, list(group)) for k, group in itertools.groupby(samples, key))


def _said(sample) -> str:
  """A response with the text that ended it; '' of one that the limit cut.

  Raises: ValueError for an episode of several turns.
  """
  turns = len(sample.get('turns') or ())
  recorded = sample.get('told', False)
  if turns > 1 or recorded:  # the policy would learn to write what it observed
    count = 'recorded' if recorded else turns
    raise ValueError(
      f'iteration {sample["step"]} has an episode of {count} turns, and rows '
      'hold single responses: its text has the answers of the environment, too'
    )
  end = sample.get('ended_by', '')  # not in logs of before 2026-11-24
  return '' if end is None else sample['response'] + end


def _reward(sample):
  return sample['reward']
