"""The host's part of the state of a run."""

import dataclasses


@dataclasses.dataclass
class Counters:
  """JSON in every checkpoint; all randomness is a function of them."""

  iteration: int = 0
  optimizer_steps: int = 0
  group_serial: int = 0  # groups ever drawn: the counter of all randomness
  tokens: int = 0  # response tokens ever generated
  skipped_in_a_row: int = 0
  entropy: float | None = None  # of the iteration before

  def note_skipped(self, skipped: bool) -> int:
    """Iterations in a row without a finite step, the newest included."""
    self.skipped_in_a_row = self.skipped_in_a_row + 1 if skipped else 0
    return self.skipped_in_a_row
