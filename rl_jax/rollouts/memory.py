"""What a rollout piece keeps from one rollout for the next ones."""

from typing import Any, Protocol

import numpy as np

from rl_jax.types import GroupSummary


class Memory(Protocol):
  """Made by `make_memory(prompts, rollout)` of a rollout piece."""

  name: str  # in checkpoints
  state: dict[str, np.ndarray]  # read as copies; set on restoring


class RememberingSelector:
  """A selector and a memory: what a checkpoint holds of both."""

  def __init__(self, prompts: Any, memory: Memory):
    self.prompts, self.memory = prompts, memory

  @property
  def state(self) -> dict[str, Any]:
    """The states of the selector and of the memory."""
    return {'prompts': self.prompts.state, self.memory.name: self.memory.state}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self.prompts.state = value['prompts']
    self.memory.state = value[self.memory.name]

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""
    return self.prompts.select(count)

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """Gives the selector the outcomes of the prompts."""
    self.prompts.observe(ids, summary)
