"""Whether anything counts what environments give as rewards."""

from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging


class UnweightedRewardWarning:
  """Looks at the components of the first rewards."""

  def __init__(self):
    self._looked = False

  def look(
    self,
    records: Sequence[Mapping[str, Any]],
    weights: Sequence[Mapping[str, float]],
  ) -> None:
    """Warns, once, if no component of the rewards has a weight."""
    if self._looked:
      return
    turns = [rewards for record in records for rewards in record['rewards']]
    given = {name for rewards in turns for name in rewards}
    counted = {name for one in weights for name in one}
    self._looked = bool(given)
    if given and not given & counted:
      logging.warning(
        'no episode has a component of task.reward_weights, %s: their rewards '
        'are 0; they have %s',
        sorted(counted),
        sorted(given),
      )
