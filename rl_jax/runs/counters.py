"""The host's part of the state of a run."""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from rl_jax.runtime.stateful import Stateful


@dataclasses.dataclass
class Counters(Stateful):
  """JSON in every checkpoint; all randomness is a function of them."""

  name: ClassVar[str] = 'counters'
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

  def host(self) -> dict[str, Any]:
    """All of them."""
    return {'counters': dataclasses.asdict(self)}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful; those that an earlier version lacks begin again."""
    del arrays
    vars(self).update(vars(Counters(**host['counters'])))
