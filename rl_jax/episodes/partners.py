"""Frozen models that environments ask while their episodes are played.

A question leaves an environment as a part of its reply, and its answer is the
next input of the environment: an episode that is repeated in another process
gets the same answers without the model. A run that continues asks again, which
has the same answers, as they are greedy and questions are batched by the same
rule. The policy reads nothing of either but what the environment says.
"""

import collections
from collections.abc import Callable, Iterable, Sequence
import dataclasses
import json
import time
from typing import Any

from rl_jax.episodes.players import Episode
from rl_jax.judging.judges import Read
from rl_jax.models.partner_source import Partner
from rl_jax.runtime import processes
from rl_jax.tasks.environments.base import Ask
from rl_jax.tasks.episodes import CALL
from rl_jax.verification.sessions import Answer, Request

_MOST = 64  # so many questions between two turns are too many
_DECIMALS = 4  # of a log-prob
QUESTIONS = 'episode/questions'  # in metrics


@dataclasses.dataclass(frozen=True)
class Asked:
  """A partner of a run; built by runs.partners.

  encode: a question to token ids; encode_answer: a candidate. texts: (params,
  questions) -> answers. log_probs: (params, [(question, candidate)]) ->
  numbers. rows: questions or candidates a call.
  """

  source: Partner
  params: Any
  encode: Callable[[str], list[int]]
  encode_answer: Callable[[str], list[int]]
  texts: Read
  log_probs: Callable[[Any, Sequence[tuple[list[int], list[int]]]], list[float]]
  rows: int = 1


class Partners:
  """Lets episodes continue until the policy's turn, or to their end."""

  def __init__(self, partners: Sequence[Asked] = ()):
    self._partners = {one.source.name: one for one in partners}
    self._asks, self._seconds = 0, 0.0

  def begin(self) -> None:
    """Begins a round: resets the counts of the metrics."""
    self._asks, self._seconds = 0, 0.0

  def metrics(self) -> dict[str, float]:
    """Since `begin`: questions, each counted once a call, and their time."""
    if not self._partners:
      return {}
    return {
      QUESTIONS: float(self._asks),
      'time/partner_seconds': self._seconds,
    }

  def play_on(
    self,
    ask: Callable[[list[Request]], list[Answer]],
    episodes: Sequence[Episode],
  ) -> None:
    """Calls the environments of own episodes, and the models that they ask.

    ask: of a pool. All processes call it together.
    """
    while True:
      if episodes:
        answers = ask([episode.request() for episode in episodes])
        for episode, answer in zip(episodes, answers, strict=True):
          episode.hear(answer)
      episodes = [episode for episode in episodes if episode.asks()]
      if not self.answered(episodes):
        return
      episodes = [episode for episode in episodes if not episode.over()]

  def answered(self, episodes: Sequence[Episode]) -> bool:
    """Returns whether some process has asked; the episodes then have their
    answers, or have failed.
    """
    waiting = [(x, one) for x in episodes if (one := x.asks()) is not None]
    known = self.answers(self.of_all([one for _, one in waiting]))
    for episode, one in waiting:
      tell(episode, *known[one])
    return bool(known)

  def of_all(self, asked: Iterable[Ask]) -> list[Ask]:
    """The questions of all processes, each once; all call it together."""
    asked = list(dict.fromkeys(asked))
    if not self._partners:  # processes need not wait for each other
      return asked
    parts = processes.gather([dataclasses.astuple(one) for one in asked])
    return list(
      dict.fromkeys(
        Ask(name, text, tuple(candidates))
        for part in parts
        for name, text, candidates in part
      )
    )

  def reads(self, question: Ask) -> bool:
    """Returns whether a model of the run is asked."""
    return question.partner in self._partners

  def code(self, question: Ask) -> int:
    """A number that has the call of a question, and its rows there."""
    kinds, place = 2 * len(self._partners), [*self._partners]
    kind = 2 * place.index(question.partner) + bool(question.candidates)
    return kinds * (len(question.candidates) or 1) + kind

  def fill(self, codes: Iterable[int]) -> bool:
    """Returns whether questions of these codes fill a call of some model."""
    rows = collections.Counter()
    for code in codes:
      count, kind = divmod(code, 2 * len(self._partners))
      rows[kind] += count
    most = [one.rows for one in self._partners.values()]
    return any(n >= most[kind // 2] for kind, n in rows.items())

  def answers(
    self, asked: list[Ask]
  ) -> dict[Ask, tuple[str | None, str | None]]:
    """(answer, None) or (None, what is wrong) of each question."""
    started = time.perf_counter()
    found: dict[Ask, tuple[str | None, str | None]] = {}
    for one in asked:
      if one.partner == CALL:
        found[one] = one.text, None
      elif one.partner not in self._partners:
        found[one] = None, _unknown(one, self._partners)
    for name, partner in self._partners.items():
      found |= _answers(partner, [one for one in asked if one.partner == name])
    self._asks += sum(one.partner != CALL for one in asked)
    self._seconds += time.perf_counter() - started
    return found


NO_PARTNERS = Partners()


def tell(episode: Episode, text: str | None, problem: str | None) -> None:
  """Gives an episode the answer to its question, or what is wrong with it."""
  if episode.questions() + 1 == _MOST:
    text = None
    problem = f'{_MOST} questions between two turns; allowed are fewer'
  if text is not None:
    episode.observe(text)
  else:
    episode.fail(problem or 'the partner gave no answer')


def _unknown(one, known):
  return f'asks the partner {one.partner!r}; the run has {sorted(known)}'


def _answers(partner, asked):
  """Asks one partner: all texts in one call, all log-probs in another."""
  found, texts, pairs = {}, {}, {}
  for one in asked:
    try:
      question, *candidates = _encoded(partner, one)
    except ValueError as error:
      found[one] = None, f'partner {partner.source.name!r}: {error}'
      continue
    if one.candidates:
      pairs[one] = [(question, ids) for ids in candidates]
    else:
      texts[one] = question
  if texts:
    said = partner.texts(partner.params, list(texts.values()))
    found |= {one: (x, None) for one, x in zip(texts, said, strict=True)}
  if pairs:
    flat = [pair for own in pairs.values() for pair in own]
    numbers = iter(partner.log_probs(partner.params, flat))
    for one, own in pairs.items():
      rounded = [round(next(numbers), _DECIMALS) for _ in own]
      found[one] = json.dumps(rounded), None
  return found


def _encoded(partner, one):
  """Ids of the question and its candidates; ValueError if they do not fit."""
  source = partner.source
  ids = [partner.encode(one.text)]
  ids += [partner.encode_answer(text) for text in one.candidates]
  limits = [source.max_tokens] + [source.answer_tokens] * len(one.candidates)
  for what, limit in zip(ids, limits, strict=True):
    if not 1 <= len(what) <= limit:
      raise ValueError(f'a text of {len(what)} tokens, allowed are 1..{limit}')
  return ids


def check(config: Any) -> None:
  """Raises ValueError if tasks ask for others than config.partners."""
  names = []
  for one in config.partners:
    if not isinstance(one, Partner):
      raise ValueError(f'partners holds {one!r}, which is not a Partner')
    names.append(one.name)
  if len(set(names)) < len(names):
    raise ValueError(f'partners: names occur twice: {names}')
  tasks = [config.task, *(one.task for one in config.evaluation.sets)]
  asked = {
    name for task in tasks if task is not None for name in task.traits.asks
  }
  if lacking := sorted(asked - set(names)):
    raise ValueError(
      f'{type(config.task).__name__} asks partners {lacking}, but partners has '
      f'{names}: --add=\'partners=Partner(name="{lacking[0]}", path=...)\''
    )
  if idle := sorted(set(names) - asked):
    raise ValueError(
      f'partners: {idle} are asked by nobody; {type(config.task).__name__} '
      f'asks {sorted(asked)}'
    )
