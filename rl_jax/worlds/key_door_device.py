"""KeyDoor as functions of arrays: what `Walk` does, for all rows at once."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.tasks import base, device_verifiers
from rl_jax.tasks.environments.base import DeviceReply
from rl_jax.worlds.device_text import spelled, word_table
from rl_jax.worlds.key_door_words import ACTIONS, MOVES, WORDS, observed

_HANDS = 3  # empty, with the key, door open


class Walks(NamedTuple):
  """Episodes on the device.

  grid: columns and rows of wall (its column and that of the door's row), key,
  goal and start. place: (column * size + row) * 3 + hands.
  """

  grid_BA: jax.Array
  place_B: jax.Array


def begin(size: int, grid_BA: jax.Array) -> Walks:
  """The states at the start, with empty hands."""
  x_B, y_B = grid_BA[:, 6], grid_BA[:, 7]
  return Walks(grid_BA, (x_B * size + y_B) * _HANDS)


def action_numbers(
  words: str, action_BA: jax.Array, length_B: jax.Array, tokenizer: Any
) -> jax.Array:
  """int32 [B] in the order of ACTIONS, their number for any other text."""
  table_SV, texts = word_table(WORDS[words], tokenizer)
  known = {word: number for number, word in enumerate(WORDS[words])}
  number_S = np.asarray([known.get(t, len(ACTIONS)) for t in texts], np.int32)
  return jnp.asarray(number_S)[spelled(table_SV, action_BA, length_B)]


def step(
  size: int, walks: Walks, number_B: jax.Array, tokenizer: Any
) -> tuple[Walks, DeviceReply]:
  """The reply to an action of each row, by its number."""
  place_B = walks.place_B
  x_B, y_B = place_B // _HANDS // size, place_B // _HANDS % size
  hands_B = place_B % _HANDS
  wall_B, door_B, key_x_B, key_y_B, goal_x_B, goal_y_B = walks.grid_BA[:, :6].T
  still = [(0, 0)] * (len(ACTIONS) + 1 - len(MOVES))
  by_B2 = jnp.asarray([*MOVES, *still])[number_B]
  to_x_B, to_y_B = x_B + by_B2[:, 0], y_B + by_B2[:, 1]
  moves_B = (number_B < len(MOVES)) & (to_x_B >= 0) & (to_x_B < size)
  moves_B &= (to_y_B >= 0) & (to_y_B < size)
  moves_B &= (to_x_B != wall_B) | ((to_y_B == door_B) & (hands_B == 2))
  takes_B = (number_B == ACTIONS.index('take')) & (hands_B == 0)
  takes_B &= (x_B == key_x_B) & (y_B == key_y_B)
  opens_B = (number_B == ACTIONS.index('open')) & (hands_B == 1)
  opens_B &= (x_B == wall_B - 1) & (y_B == door_B)
  x_B, y_B = jnp.where(moves_B, to_x_B, x_B), jnp.where(moves_B, to_y_B, y_B)
  gained_B = (takes_B | opens_B).astype(jnp.int32)
  after_B = (x_B * size + y_B) * _HANDS + hands_B + gained_B
  done_B = (x_B == goal_x_B) & (y_B == goal_y_B)
  cost_B = jnp.where(after_B == place_B, -4.0, -1.0)
  ids_SO, length_S = _observations(size, tokenizer)
  reply = DeviceReply(
    ids_BO=jnp.asarray(ids_SO)[after_B],
    length_B=jnp.asarray(length_S)[after_B],
    rewards={
      base.OUTCOME: done_B.astype(jnp.float32),
      'progress': gained_B / 2.0,
      'maze': jnp.where(done_B, 0.0, cost_B),
    },
    done_B=done_B,
    state_B=after_B,
    action_B=number_B,
  )
  return walks._replace(place_B=after_B), reply


def _observations(size: int, tokenizer: Any) -> tuple[np.ndarray, np.ndarray]:
  """(ids int32 [S, O], lengths [S]) of the observations at every place."""
  places = [(x, y) for x in range(size) for y in range(size)]
  return device_verifiers.pad_rows(
    [
      tokenizer.encode(observed((x, y, hands)))
      for x, y in places
      for hands in range(_HANDS)
    ]
  )
