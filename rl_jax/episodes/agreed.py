"""The states of rows in slots, as all processes of a run know them.

A process calls the environments of its own rows, so only it knows when one has
been answered. All must start the same programs, though, and take a group for
over at the same burst. So the states of all rows are exchanged once a cycle, on
the devices and beside the burst, and what the next cycle starts depends on
nothing but these: also which rows have places in the cache, and when models are
asked.
"""

import numpy as np

from rl_jax.decoding.cache_places import Places

# The state of a row: it waits for an answer, or to be fed what was said, or its
# turn is open, or it is over. From ASKS on it waits for that of a partner, and
# the rest is the code of its question (partners).
WAITS, SAID, DRAWS, OVER, ASKS = range(5)


class Agreed:
  """The states of all rows of a game as of its last cycle.

  over_B: rows that are not played.
  """

  def __init__(self, over_B: np.ndarray):
    self.state_B = np.where(over_B, OVER, DRAWS).astype(np.int32)

  @property
  def ready(self) -> list[int]:
    """The rows with something to do on the devices, first those to be fed."""
    return [
      row
      for state in (SAID, DRAWS)
      for row in np.flatnonzero(self.state_B == state).tolist()
    ]

  @property
  def codes(self) -> list[int]:
    """The codes of the questions to partners."""
    return (self.state_B[self.state_B >= ASKS] - ASKS).tolist()

  @property
  def calm(self) -> bool:
    """Returns whether no row waits for anything but its own tokens."""
    return not np.isin(self.state_B, (WAITS, SAID)).any()

  @property
  def said_B(self) -> np.ndarray:
    """The rows that waited to be fed."""
    return self.state_B == SAID

  @property
  def live_B(self) -> np.ndarray:
    """The rows that are not over."""
    return self.state_B != OVER

  def learn(self, state_B: np.ndarray, places: Places) -> list[int]:
    """Takes the states of the next cycle; returns rows that are over by it.

    places: in the cache, which all processes give and take alike.
    """
    before_B, self.state_B = self.state_B, state_B
    for row in np.flatnonzero(before_B != state_B).tolist():
      if state_B[row] == OVER:
        places.ends(row)
      elif state_B[row] in (SAID, DRAWS):
        places.wakes(row)
      else:
        places.waits(row)
    ended_B = (before_B != OVER) & (state_B == OVER)
    return np.flatnonzero(ended_B).tolist()
