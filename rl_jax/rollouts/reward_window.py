"""The rewards of the last rollouts, summed."""

from typing import Any

import jax
import numpy as np


class RewardWindow:
  """Sums and numbers of the rewards of the last `length` rollouts."""

  name = 'reward_window'  # in checkpoints

  def __init__(self, length: int):
    self._rewards_W2 = np.zeros((length, 2), np.float32)

  @property
  def state(self) -> dict[str, np.ndarray]:
    """What a checkpoint holds: a copy, as it may be written later."""
    return {'rewards_W2': self._rewards_W2.copy()}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self._rewards_W2 = np.array(jax.device_get(value['rewards_W2']))

  def add(self, total: float, count: int) -> float:
    """Takes in a rollout; the mean of all rewards of the window, 0 of none."""
    self._rewards_W2 = np.roll(self._rewards_W2, 1, axis=0)
    self._rewards_W2[0] = total, count
    total, count = self._rewards_W2.sum(axis=0, dtype=np.float64)
    return float(total / max(count, 1.0))
