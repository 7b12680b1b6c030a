"""The rubric of a judge, which a model may rewrite from what was judged."""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from absl import logging

from rl_jax.models.judge_source import Revision, filled

Seen = list[list[str]]  # prompt, response, score of each


@dataclasses.dataclass(frozen=True)
class Reviser:
  """params: of its model, None: those that sample. read: see judges.Asked."""

  source: Revision
  params: Any
  encode: Callable[[str], list[int]]
  read: Callable[[Any, Sequence[list[int]]], list]

  def __call__(self, policy: Any, rubric: str, seen: Seen) -> str:
    """The next rubric; the same one where nothing was seen or answered."""
    slots = ('prompt', 'response', 'score')
    proposals = self._answers(
      policy,
      self.source.refine,
      [dict(zip(slots, row, strict=True)) | {'rubric': rubric} for row in seen],
    )
    if not proposals:
      return rubric
    joined = {'rubric': rubric, 'rubrics': '\n\n'.join(proposals)}
    (found,) = self._answers(policy, self.source.merge, [joined]) or ['']
    return found.strip() or rubric

  def _answers(self, policy, template, texts):
    """Answers to questions that are short enough; a warning counts others."""
    ids = [self.encode(filled(template, slots)) for slots in texts]
    short = [x for x in ids if len(x) <= self.source.max_tokens]
    if len(short) < len(ids):
      logging.warning(
        '%d of %d questions about a rubric are longer than max_tokens = %d',
        len(ids) - len(short),
        len(ids),
        self.source.max_tokens,
      )
    params = policy if self.params is None else self.params
    return self.read(params, short) if short else []


class Rubric:
  """The text of one judge as it is now, and what a revision will read."""

  def __init__(self, name: str, text: str, reviser: Reviser | None):
    self._name, self._reviser = name, reviser
    self.state: dict[str, Any] = {
      'text': text,
      'version': 0,
      'iterations': 0,
      'seen': [],
    }

  @property
  def text(self) -> str:
    """The text of the slot {rubric}."""
    return self.state['text']

  def begin(self, policy: Any) -> None:
    """Begins an iteration: revises the rubric if that is due."""
    if self._reviser is None:
      return
    state = self.state = dict(self.state)
    if state['seen'] and state['iterations'] % self._reviser.source.every == 0:
      text = self._reviser(policy, state['text'], state['seen'])
      state |= {'text': text, 'version': state['version'] + 1, 'seen': []}
      logging.info(
        'rubric %d of judge %r: %s', state['version'], self._name, text
      )
    state['iterations'] += 1

  def see(self, judged: Sequence[tuple[str, str, float]]) -> None:
    """Returns what was judged last; spread evenly, as many as a revision
    reads.
    """
    if self._reviser is None or not judged:
      return
    count = min(self._reviser.source.samples, len(judged))
    chosen = [judged[i * len(judged) // count] for i in range(count)]
    self.state['seen'] = [[p, r, f'{score:g}'] for p, r, score in chosen]
