"""KeyDoor that answers every action with a message."""

import dataclasses
from typing import Any

from rl_jax.checks import checked
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import DeviceReply, Reply
from rl_jax.worlds.key_door import KeyDoor, Layout, Walk
from rl_jax.worlds.key_door_words import HOLDS, State, observed

# A step, nothing happens, a key lies here, it is taken, the door is opened.
MESSAGES = 'MBSTO'
_MOVED, _NOTHING, _SEES, _TAKES, _OPENS = range(len(MESSAGES))


def kind_of(layout: Layout, before: State, after: State) -> int:
  """Returns what is said of an action, a place in MESSAGES."""
  if after[2] != before[2]:
    return _TAKES if after[2] == 1 else _OPENS
  if after[:2] == layout.key and after[2] == 0:
    return _SEES
  return _NOTHING if after == before else _MOVED


@dataclasses.dataclass(frozen=True)
@checked
class NarratedKeyDoor(KeyDoor):
  """KeyDoor whose observations say what an action did, as '01-S>'.

  'M' for a step, 'B' if nothing happens, 'S' where a key lies, also if nothing
  happens there, 'T' if it is taken and 'O' if the door is opened. A message is
  its letter and the place: number letter * size^2 + column * size + row, for
  pieces that read messages (factors (5, size^2)). 'S' can be had again and
  again by doing nothing at the key.
  Source: this code.
  """

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return super().alphabet + MESSAGES

  def make(self, example: Example) -> 'NarratedWalk':
    """An episode in the grid of the example."""
    return NarratedWalk(self)

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `NarratedWalk.step`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers

    before_B = state.place_B
    walks, reply = super().step_device(state, action_BA, length_B, tokenizer)
    after_B, hands = walks.place_B, len(HOLDS)
    key_B = walks.grid_BA[:, 2] * self.size + walks.grid_BA[:, 3]
    sees_B = (after_B // hands == key_B) & (after_B % hands == 0)
    kind_B = jnp.where(after_B == before_B, _NOTHING, _MOVED)
    kind_B = jnp.where(sees_B, _SEES, kind_B)
    gains_B = after_B % hands != before_B % hands
    gain_B = jnp.where(after_B % hands == 1, _TAKES, _OPENS)
    kind_B = jnp.where(gains_B, gain_B, kind_B)
    texts = [
      _answer((place // self.size, place % self.size, held), kind)
      for place in range(self.size**2)
      for held in range(hands)
      for kind in range(len(MESSAGES))
    ]
    ids_SO, length_S = device_verifiers.pad_rows(
      [tokenizer.encode(text) for text in texts]
    )
    said_B = after_B * len(MESSAGES) + kind_B
    return walks, reply._replace(
      ids_BO=jnp.asarray(ids_SO)[said_B],
      length_B=jnp.asarray(length_S)[said_B],
    )

  def row_inputs_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> dict[str, Any]:
    """message_BT of `FeedbackReward`, where a text like '01-S>' ends.

    A turn of the policy may look the same; the piece leaves it out.
    """
    import jax.numpy as jnp

    del length_B  # padding has no letter

    def back(x_BT, n):
      return jnp.pad(
        x_BT[:, : x_BT.shape[1] - n], ((0, 0), (n, 0)), constant_values=-1
      )

    def places(text):
      return jnp.asarray([tokenizer.encode(letter)[0] for letter in text])

    def digit(text, n):
      """Place in the text of the letter n tokens before, -1: none of it."""
      is_BTL = back(response_BT, n)[..., None] == places(text)[None, None]
      return jnp.where(is_BTL.any(-1), is_BTL.argmax(-1), -1)

    numbers = ''.join(map(str, range(self.size)))
    x_BT, y_BT = digit(numbers, 4), digit(numbers, 3)
    kind_BT = digit(MESSAGES, 1)
    whole_BT = (x_BT >= 0) & (y_BT >= 0) & (kind_BT >= 0)
    whole_BT &= (digit(HOLDS, 2) >= 0) & (digit('>', 0) >= 0)
    number_BT = (kind_BT * self.size + x_BT) * self.size + y_BT
    return {'message_BT': 1.0 * jnp.where(whole_BT, number_BT + 1, 0)}


class NarratedWalk(Walk):
  """One episode."""

  def step(self, action: str) -> Reply:
    """The reply of KeyDoor, with a message."""
    before = self._state
    reply = super().step(action)
    kind = kind_of(self._layout, before, self._state)
    return dataclasses.replace(reply, observation=_answer(self._state, kind))


def _answer(state, kind):
  text = observed(state)
  return text[:-1] + MESSAGES[kind] + text[-1]
