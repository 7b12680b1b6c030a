"""Questions of episodes to frozen models, answered between bursts.

A model reads a fixed number of rows a call, so that an answer has the same bits
whatever else is asked with it. The call is made when it is full, or when
nothing else can be sampled: time decides when an answer comes, never what it
says. It is in the journal before it is used, as those of environments.
"""

import time

from rl_jax.episodes.calls import Answer, Request, outcome_of
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.partners import Partners
from rl_jax.episodes.players import Episode
from rl_jax.tasks.environments.base import Ask
from rl_jax.verification import sessions
from rl_jax.verification.journal import crc_of

PARTNER = 'partner'  # the kind of call
_TEXT = 'text'  # in the reply that the journal keeps


class Questions:
  """The questions that wait for a call of their model."""

  def __init__(self, partners: Partners, journal: NumberedCalls):
    self._partners, self._journal = partners, journal
    self._waiting: list[tuple[Request, float]] = []

  def __bool__(self) -> bool:
    return bool(self._waiting)

  @property
  def full(self) -> bool:
    """Returns whether a call of some model would have no row left."""
    asked = {request.payload for request, _ in self._waiting}
    return self._partners.fill(map(self._partners.code, asked))

  def code(self, question: Ask) -> int:
    """See Partners.code."""
    return self._partners.code(question)

  def ask(self, request: Request) -> Answer | None:
    """The answer if no model is needed; None: `answers` has it later."""
    known = self._journal.known(request)
    if known is not None:
      return Answer(request, outcome_of(known), known)
    if self._partners.reads(request.payload):
      self._waiting.append((request, time.perf_counter()))
      return None
    return self._answer(request, self._partners.answers([request.payload]))

  def answers(self) -> list[Answer]:
    """Asks the models all that waits, of all processes, which call it together.

    Each has the answers to what its own rows ask.
    """
    waiting, self._waiting = self._waiting, []
    asked = self._partners.of_all(request.payload for request, _ in waiting)
    started = time.perf_counter()
    known = self._partners.answers(asked)
    ran, found = time.perf_counter() - started, []
    for request, since in waiting:
      found.append(self._answer(request, known, started - since, ran))
      self._journal.keep(found[-1])
    return found

  def drop(self, serial: int) -> None:
    """Nobody waits for the answers of a round any more."""
    self._waiting = [x for x in self._waiting if x[0].serial != serial]

  def _answer(self, request, known, queued=0.0, ran=0.0):
    text, problem = known[request.payload]
    reply = sessions.Answer({_TEXT: text})
    if text is None:
      reply = sessions.Answer(None, 'invalid', problem)
    return Answer(request, outcome_of(reply), reply, queued, ran)


def request_of(serial: int, episode: Episode, question: Ask) -> Request:
  """The call of a question; serial: of the round."""
  return Request(
    serial=serial,
    sample=episode.key[1],
    turn=len(episode.actions),
    kind=PARTNER,
    payload=question,
    crc=crc_of([question.partner, question.text, *question.candidates]),
  )


def text_of(answer: Answer) -> tuple[str | None, str | None]:
  """(what the partner has said, None), or (None, what is wrong)."""
  reply = answer.reply
  if reply.reply is None:
    return None, reply.detail
  return reply.reply[_TEXT], None
