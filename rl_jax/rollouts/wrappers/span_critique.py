"""Text2Grad: a critic marks good and bad spans of responses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts import responses
from rl_jax.rollouts.wrappers import single_responses
from rl_jax.runtime import processes
from rl_jax.types import Array, Trajectories

Span = tuple[int, int, float]


@piece
class SpanCritique(RolloutWrapper):
  """Fills extras 'span_score_BT' with the scores of the task's spans.

  The task marks spans of characters (`spans`); spans that overlap become one
  with their lowest score. A token has the lowest score of the spans that share
  a character with it, and 0 in none.
  Source: Text2Grad, microsoft/Text2Grad nl_gradiant_policy_optimization (by a
  digest); there a model writes the spans in its critique.
  """

  reads_rewards = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task marks no spans, or rows are episodes."""
    task = context.task
    if task is not None and not task.supports('spans'):
      raise ValueError(
        'method.rollout: SpanCritique needs a task that marks spans, but '
        f'{type(task).__name__} has no method `spans`'
      )
    single_responses.refuse(
      self, 'marks single responses', context.rollout, 'turns'
    )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows with the scores of their tokens, no further rounds)."""
    own = responses.own_rows(len(done.examples), traj.group_size)
    known = sampler.tokenizer.token_bytes
    found = []
    for place, text in enumerate(done.texts):
      example = done.examples[(own.start + place) // traj.group_size]
      length = done.responses['length'][own][place]
      ids = done.responses['response'][place][:length]
      sizes = [len(known[i]) if i < len(known) else 0 for i in ids]
      spans = in_bytes(text, sampler.task.spans(example, text))
      scores = token_scores(sizes, spans)
      missing = traj.response_BT.shape[1] - len(scores)
      found.append([*scores, *[0.0] * missing])
    score_BT = np.asarray(
      [row for part in processes.gather(found) for row in part], np.float32
    )
    return sampler.run(_with_scores, traj, score_BT), []


def merged(spans: Sequence[Span]) -> list[Span]:
  """Spans in order; those that overlap are one, with their lowest score."""
  found: list[Span] = []
  for begin, end, score in sorted(spans):
    if found and begin < found[-1][1]:
      first, last, least = found.pop()
      begin, end, score = first, max(last, end), min(least, score)
    found.append((begin, end, score))
  return found


def in_bytes(text: str, spans: Sequence[Span]) -> list[Span]:
  """Merged spans of the UTF-8 of a text in place of its characters."""

  def at(place: int) -> int:
    return len(text[:place].encode(errors='replace'))

  return [(at(a), at(b), score) for a, b, score in merged(spans)]


def token_scores(sizes: Sequence[int], spans: Sequence[Span]) -> list[float]:
  """The score of each token, by the numbers of its bytes."""
  scores, begin = [], 0
  for size in sizes:
    end = begin + size
    over = [x for a, b, x in spans if a < end and begin < b]
    scores.append(min(over, default=0.0))
    begin = end
  return scores


def _with_scores(traj: Trajectories, score_BT: Array) -> Trajectories:
  """The rows with the scores of their tokens."""
  return traj.replace(extras={**traj.extras, 'span_score_BT': score_BT})
