"""The beginnings of episodes: first observations, or why there are none.

Whether an episode begins is not reproducible (a reset may run out of time), so
the journal knows every opening, also of those that are kept from earlier ones:
a run that continues has the same prompts.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from rl_jax.episodes.partners import Partners
from rl_jax.episodes.players import Episode
from rl_jax.runtime import processes
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import (
  Opened,
  opened,
)
from rl_jax.tasks.environments.several import begins_in_chat
from rl_jax.verification.sessions import Answer, Request

Ask = Callable[[Sequence[Request]], list[Answer]]


def open_all(
  task: Any,
  examples: Sequence[Example],
  ask: Ask,
  partners: Partners,
  number: int,
) -> list[Opened]:
  """The examples with their first observations, or with a `failure`.

  number: of a round of episodes. All processes open the same examples; one
  that fails in some of them has failed.
  """
  traits = task.traits
  episodes = [
    Episode((number, n), example, traits.players, rewrites=traits.rewrites)
    for n, example in enumerate(examples)
  ]
  partners.play_on(ask, episodes)
  parts = processes.gather([episode.failure for episode in episodes])
  return [
    _opened(task, episode, next((x for x in failures if x is not None), None))
    for episode, *failures in zip(episodes, *parts, strict=True)
  ]


def _opened(task, episode, failure):
  example, chat = episode.example, begins_in_chat(task, episode.example)
  if failure is None:
    acting = episode.said[-1]['acting']
    return opened(example, episode.beginning(), chat, acting)
  nothing = '' if episode.players == 1 else ('',) * episode.players
  first = opened(example, nothing, chat)
  failed = {'failure': tuple(failure)}
  others = tuple(dataclasses.replace(x, **failed) for x in first.others)
  return dataclasses.replace(first, others=others, **failed)
