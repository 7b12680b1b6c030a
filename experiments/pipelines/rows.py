"""Rows of data from the samples that a run has logged."""

from collections.abc import Iterable, Iterator, Sequence
import itertools
from typing import Any

FORMS = ('pair', 'label', 'response', 'text')
# Of a line, which has more.
KEYS = frozenset(('step', 'prompt', 'response', 'reward', 'error'))


def rows(
  samples: Sequence[dict[str, Any]], form: str, least: float, chat: bool
) -> Iterator[dict[str, Any]]:
  """Those of one log, in its order; samples: its lines."""
  judged = [x for x in samples if x['error'] is None and _said(x)]
  turn = lambda role, text: [{'role': role, 'content': text}] if chat else text
  for (_, prompt), group in _groups(judged):
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
    else:
      best, worst = (f(group, key=_reward) for f in (max, min))
      if worst['reward'] < least <= best['reward']:
        texts = [turn('assistant', _said(x)) for x in (best, worst)]
        yield {'prompt': asked, 'chosen': texts[0], 'rejected': texts[1]}


def _groups(samples: Iterable[dict[str, Any]]):
  """((iteration, prompt), samples): those of a prompt follow each other."""
  key = lambda sample: (sample['step'], sample['prompt'])
  return ((k, list(group)) for k, group in itertools.groupby(samples, key))


def _said(sample) -> str:
  """A response with the text that ended it; '' of one that the limit cut."""
  end = sample.get('ended_by', '')  # not in logs of before 2026-11-24
  return '' if end is None else sample['response'] + end


def _reward(sample):
  return sample['reward']
