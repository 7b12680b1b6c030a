"""The questions of a judge about the responses to a prompt, and its verdict.

Text and numbers on the host only; who answers is `judges`.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools

import numpy as np

from rl_jax.models.judge_source import (
  GROUP,
  PAIRS,
  SINGLE,
  Judge,
  filled,
  headings_of,
  quoted,
)
from rl_jax.tasks.base import PART, Example
from rl_jax.tasks.draws import Draws
from rl_jax.tasks.score_lists import last_score, named_scores

_NAME = '[{number}]'  # of a response among others
Messages = tuple[dict[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Question:
  """rows: sample indices that it is about, in the order of the question.

  text: plain. messages: a conversation instead, open for the judge's answer or
  ended by the response. criterion: index in Judge.criteria.
  """

  rows: tuple[int, ...]
  criterion: int
  text: str = ''
  messages: Messages = ()
  is_open: bool = True


def judges(judge: Judge, example: Example) -> bool:
  """Returns whether the judge reads responses to this prompt (`parts`)."""
  return not judge.parts or example.meta.get(PART) in judge.parts


def questions(
  judge: Judge,
  example: Example,
  texts: Mapping[int, str],
  rubric: str = '',
  rival_GG: np.ndarray | None = None,
) -> list[Question]:
  """About the responses to one prompt; texts: by sample index.

  rubric: of the slot; '': the row's own, if it has one. rival_GG: the symmetric
  pairs that a judge of pairs is asked about (ops.rivals); None: all. There are
  none about a part of a mixture that is not the judge's.
  """
  if not judges(judge, example):
    return []
  parts = {row: judge.judged(text) for row, text in texts.items()}
  if judge.form != SINGLE:
    headings = headings_of(_NAME) + headings_of(judge.template)
    parts = {row: quoted(text, headings) for row, text in parts.items()}
  found = []
  for c, (criterion, _) in enumerate(judge.criteria):
    about = {k: v for k, v in example.meta.items() if isinstance(v, str)} | {
      'prompt': example.prompt,
      'answer': example.answer,
      'criterion': criterion,
      **({'rubric': rubric} if rubric else {}),
    }
    for rows in _subjects(judge, example, tuple(parts), rival_GG):
      shown = _shown(judge.form, [parts[row] for row in rows])
      found.append(_question(judge, example, rows, c, about | shown))
  return found


def _subjects(judge, example, rows, rival_GG):
  """Tuples of rows, one for each question."""
  if judge.form == SINGLE:
    return [(row,) for row in rows]
  if judge.form == PAIRS:
    pairs = itertools.permutations(rows, 2)
    return [pair for pair in pairs if rival_GG is None or rival_GG[pair]]
  draws = Draws('judge', judge.name, example.id)
  return [tuple(sorted(rows, key=lambda row: draws.uniform()))] if rows else []


def _shown(form, texts):
  """The slots that hold responses."""
  if form == SINGLE:
    return {'response': texts[0]}
  if form == PAIRS:
    return {'first': texts[0], 'second': texts[1]}
  names = (filled(_NAME, {'number': str(i)}) for i in range(1, len(texts) + 1))
  named = (f'{name}\n{text}' for name, text in zip(names, texts, strict=True))
  return {'responses': '\n\n'.join(named)}


def _question(judge, example, rows, criterion, slots):
  if judge.template:
    text = filled(judge.template, slots)
    if not judge.chat:
      return Question(rows, criterion, text)
    return Question(rows, criterion, '', ({'role': 'user', 'content': text},))
  if not judge.chat:
    return Question(rows, criterion, slots['prompt'] + slots['response'])
  asked = example.messages or ({'role': 'user', 'content': example.prompt},)
  said = {'role': 'assistant', 'content': slots['response']}
  return Question(rows, criterion, '', (*asked, said), is_open=False)


def scores(
  judge: Judge,
  asked: Sequence[Question],
  answers: Sequence[float | str],
  group_size: int,
) -> tuple[np.ndarray, int]:
  """(score of each sample [G], answers that could not be read).

  answers: numbers, or texts where the judge reads text. A sample that no
  question is about has 0; of pairs the only one has 1/2.
  """
  if judge.form == PAIRS:
    return _mean_wins(judge, asked, answers, group_size), 0
  total_G, unread = np.zeros(group_size), 0
  for c, (_, weight) in enumerate(judge.criteria):
    sum_G, count_G = np.zeros(group_size), np.zeros(group_size)
    for question, answer in zip(asked, answers, strict=True):
      if question.criterion != c:
        continue
      verdict, readable = _verdict(judge, question, answer)
      unread += not readable
      for row, score in verdict.items():
        sum_G[row] += score
        count_G[row] += 1
    mean_G = np.where(count_G > 0, sum_G / np.maximum(count_G, 1), 0.0)
    total_G += weight * mean_G
  return total_G / _total(judge), unread


def preferences(
  judge: Judge,
  asked: Sequence[Question],
  answers: Sequence[float],
  group_size: int,
) -> np.ndarray:
  """P(sample i beats sample j), [G, G]; 1/2 where nothing was asked.

    P(i beats j) = sum_c w_c (p(i, j) + 1 - p(j, i)) / 2 / sum_c |w_c|

  Of a judge of pairs, over its criteria c; answers are p.
  """
  beats_GG, asked_GG = _preferences(judge, asked, answers, group_size)
  return np.where(asked_GG & np.isfinite(beats_GG), beats_GG, 0.5)


def _preferences(judge, asked, answers, group_size):
  """(P, 0 where nothing was asked; where something was), each [G, G]."""
  total_GG = np.zeros((group_size, group_size))
  asked_GG = np.zeros(total_GG.shape, bool)
  for question, answer in zip(asked, answers, strict=True):
    i, j = question.rows
    _, weight = judge.criteria[question.criterion]
    total_GG[i, j] += 0.5 * weight * answer
    total_GG[j, i] += 0.5 * weight * (1.0 - answer)
    asked_GG[i, j] = asked_GG[j, i] = True
  return total_GG / _total(judge), asked_GG


def _mean_wins(judge, asked, answers, group_size):
  beats_GG, asked_GG = _preferences(judge, asked, answers, group_size)
  count_G = asked_GG.sum(axis=1)
  mean_G = beats_GG.sum(axis=1) / np.maximum(count_G, 1)
  signed = sum(weight for _, weight in judge.criteria)
  return np.where(count_G > 0, mean_G, 0.5 * signed / _total(judge))


def _total(judge):
  return sum(abs(weight) for _, weight in judge.criteria)


def _verdict(judge, question, answer):
  """({row: score}, whether the answer could be read); not of pairs."""
  rows = question.rows
  if judge.form == GROUP:
    found = named_scores(answer, len(rows), judge.score_range)
    return dict(zip(rows, found or [0.0] * len(rows), strict=True)), bool(found)
  if judge.reads != 'text':
    return {rows[0]: answer}, True
  score = last_score(answer, judge.score_range)
  return {rows[0]: score or 0.0}, score is not None
