"""Rules by which named policies follow the one that is trained.

A method reads policies by name: `reference` for logp_ref, and what its pieces
list in `policies`, a mapping of names to rules. The run keeps them outside the
training state; no gradient reaches them.
"""

import dataclasses
from typing import Any, ClassVar

import jax

from rl_jax.checks import checked, ranged
from rl_jax.types import Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frozen:
  """theta' = theta_0: the initial policy for the whole run."""

  def due(self, iteration: Array | int) -> Array | bool:
    """Never renewed, so that checkpoints need not hold it."""
    return False

  def renewed(self, old: Any, params: Any) -> Any:
    """What it becomes when it is due."""
    return old


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loaded(Frozen):
  """theta' of a work directory or model directory, for the whole run.

  It has the model and the tokens of the policy; a value head is not read.
  """

  path: str


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class CopyEvery:
  """theta' <- theta after every so many iterations (a hard update)."""

  iterations: int = ranged(low=1)

  def due(self, iteration: Array | int) -> Array | bool:
    """After iterations n, 2 n, ..."""
    return iteration % self.iterations == 0

  def renewed(self, old: Any, params: Any) -> Any:
    """The policy as it is now."""
    return params


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Average:
  """theta' <- decay theta' + (1 - decay) theta after every so many iterations.

  An exponential moving average, in float32: a soft update. For a reference the
  idea is that of TR-DPO (arXiv:2404.09656); its schedule was not compared.
  """

  decay: float = ranged(low=0.0, high=1.0)
  iterations: int = ranged(1, 1)
  needs_float32: ClassVar[bool] = True

  def due(self, iteration: Array | int) -> Array | bool:
    """After iterations n, 2 n, ..."""
    return (iteration > 0) & (iteration % self.iterations == 0)

  def renewed(self, old: Any, params: Any) -> Any:
    """The next average, leaf by leaf."""
    return jax.tree.map(self._next, old, params)

  def _next(self, old: Array, new: Array) -> Array:
    mean = self.decay * old.astype('float32')
    mean += (1.0 - self.decay) * new.astype('float32')
    return mean.astype(old.dtype)
