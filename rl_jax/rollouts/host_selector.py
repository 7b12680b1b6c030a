"""Selects the next prompts on the host, before a dispatch."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import GroupSummary


class HasState(Protocol):
  """An object whose state checkpoints hold."""

  @property
  def state(self) -> Any:
    """Returns what a checkpoint holds."""

  @state.setter
  def state(self, value: Any) -> None: ...


class PromptSelector(HasState, Protocol):
  """The choice of the prompts of a source."""

  @property
  def memory(self) -> Any:
    """Returns what a rollout piece remembers between rollouts; None:
    nothing.
    """

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """Gives the selector the outcomes of the prompts; summary: NumPy arrays."""


class SavedSelector(Stateful):
  """The part of a selector that checkpoints hold."""

  name: ClassVar[str] = 'selector'

  def __init__(self, selector: HasState):
    self._selector = selector

  def arrays(self) -> dict[str, Any]:
    """See Stateful."""
    return {'selector': self._selector.state}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del host
    self._selector.state = arrays['selector']


class HostSelector:
  """A selector (pure jnp) run on the host's CPU device."""

  memory = None

  def __init__(self, selector: Any, num_prompts: int, key: jax.Array):
    self._cpu = jax.local_devices(backend='cpu')[0]
    self._selector = selector
    self._key = jax.device_get(
      jax.random.key_data(randomness.purpose_key(key, randomness.SELECTION))
    )
    self._select = jax.jit(self._selector.select, static_argnames='count')
    self._observe = jax.jit(self._selector.observe)
    with jax.default_device(self._cpu):
      self.state = self._selector.init(num_prompts)
    self.state = jax.device_get(self.state)

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""
    with jax.transfer_guard('allow'), jax.default_device(self._cpu):
      key = jax.random.wrap_key_data(jnp.asarray(self._key))
      ids, state = self._select(self.state, key, count=count)
      self.state = jax.device_get(state)
      return np.asarray(ids)

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """Gives the selector the outcomes of the prompts; summary: NumPy arrays."""
    with jax.transfer_guard('allow'), jax.default_device(self._cpu):
      self.state = jax.device_get(self._observe(self.state, ids, summary))
