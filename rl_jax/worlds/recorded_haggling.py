"""Dialogues of scripted buyers with the sellers of Haggling."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds.haggling import (
  ACTS,
  APPEALS,
  CONCESSION,
  PLAIN,
  Haggling,
)


@dataclasses.dataclass(frozen=True)
@checked
class RecordedHaggling(Haggling):
  """Haggling with a recorded dialogue for every example.

  A share `good` of the buyers looks for the appeal that suits, offers half of
  the ask while it moves and pays it when it does not; the others draw acts, and
  prices from half of the ask to the ask. Every turn of both is with probability
  `noise` a draw among all well-formed ones. The reward is that of the whole
  dialogue.
  Source: this code, in place of a language model that imagines dialogues
  ("Zero-Shot Goal-Directed Dialogue via RL on Imagined Conversations").
  """

  good: float = ranged(0.5, 0.0, 1.0)
  noise: float = ranged(0.2, 0.0, 1.0)

  def recorded(self, example: Example) -> tuple[RecordedResponse]:
    """The dialogue."""
    stream = draws.Draws('buyer', seed_of(example))
    buyer = _Good if stream.uniform() < self.good else _Poor
    buyer, dialogue = buyer(stream), self.make(example)
    said, turns = dialogue.reset(0), []
    total = dict.fromkeys(self.reward_weights, 0.0)
    while not said.done:
      ask = said.state
      assert isinstance(ask, int)  # as Haggling tells it
      action = buyer.turn(ask)
      if stream.uniform() < self.noise:
        action = stream.choice(ACTS) + str(stream.below(self.prices))
      said = dialogue.step(action)
      turns.append((action, said.observation))
      total = {name: x + said.components[name] for name, x in total.items()}
    reward = base.combine(total, self.reward_weights)
    return (RecordedResponse(turns=tuple(turns), reward=reward),)

  def target(self, example: Example) -> str:
    """Returns what the recorded buyer says first."""
    return self.recorded(example)[0].turns[0][0]


class _Good:
  """Looks for the appeal that suits, and continues with it."""

  def __init__(self, stream: draws.Draws):
    self._act, self._asks = stream.below(len(APPEALS)), []

  def turn(self, ask: int) -> str:
    """Half of the ask while the appeal works; the ask where it has moved less.

    Where it has not moved at all the next appeal, with what it would lead to.
    """
    self._asks.append(ask)
    moved = self._asks[-2] - ask if len(self._asks) > 1 else CONCESSION
    if ask == self._asks[0] and not moved:
      self._act = (self._act + 1) % len(APPEALS)
      return APPEALS[self._act] + str(ask - CONCESSION)
    if moved < CONCESSION:
      return PLAIN + str(ask)
    return APPEALS[self._act] + str(ask // 2)


class _Poor:
  """Says anything."""

  def __init__(self, stream: draws.Draws):
    self._stream = stream

  def turn(self, ask: int) -> str:
    """An act and a price from half of the ask to the ask."""
    price = (ask + 1) // 2 + self._stream.below(ask // 2 + 1)
    return self._stream.choice(ACTS) + str(price)
