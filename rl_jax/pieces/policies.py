"""Rules by which named policies follow the one that is trained.

A method reads policies by name: `reference` for logp_ref, and what its pieces
list in `policies`, a mapping of names to rules. The run keeps them outside the
training state; no gradient reaches them.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rl_jax.checks import checked, ranged
from rl_jax.types import Array


class ReferenceRule:
  """The rule by which a named policy follows the one that is trained.

  What is kept of it are its weights, unless a rule keeps more.
  """

  # Whether small changes of the weights would be lost in fewer bits.
  needs_float32: ClassVar[bool] = False

  @property
  def copies(self) -> int:
    """Returns how many times the weights are held."""
    return 1

  def due(self, iteration: Array | int) -> Array | bool:
    """Returns whether it is renewed after this iteration."""
    raise NotImplementedError

  def renewed(self, kept: Any, params: Any) -> Any:
    """Returns what it becomes when it is due; params are those that are
    trained.
    """
    raise NotImplementedError

  def start(self, params: Any) -> Any:
    """Returns what is kept at first; params may be kept as they are."""
    return params

  def current(self, kept: Any) -> Any:
    """The weights of the policy."""
    return kept


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frozen(ReferenceRule):
  """theta' = theta_0: the initial policy for the whole run."""

  def due(self, iteration: Array | int) -> Array | bool:
    """Never renewed, so that checkpoints need not hold it."""
    return False

  def renewed(self, kept: Any, params: Any) -> Any:
    """Returns what it becomes when it is due."""
    return kept


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loaded(Frozen):
  """theta' of a work directory or model directory, for the whole run.

  It has the model and the tokens of the policy; a value head is not read.
  """

  path: str


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class CopyEvery(ReferenceRule):
  """theta' <- theta after every so many iterations (a hard update)."""

  iterations: int = ranged(low=1)

  def due(self, iteration: Array | int) -> Array | bool:
    """After iterations n, 2 n, ..."""
    return iteration % self.iterations == 0

  def renewed(self, kept: Any, params: Any) -> Any:
    """The policy as it is now."""
    return params


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Average(ReferenceRule):
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

  def renewed(self, kept: Any, params: Any) -> Any:
    """The next average, leaf by leaf."""
    return jax.tree.map(self._next, kept, params)

  def _next(self, old: Array, new: Array) -> Array:
    mean = self.decay * old.astype('float32')
    mean += (1.0 - self.decay) * new.astype('float32')
    return mean.astype(old.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RandomPast(ReferenceRule):
  """theta' <- theta_j, j uniform over the rounds before this one.

  A round has so many iterations; theta_j is the policy at the start of round j,
  never that of the current one but in round 0, which has no past. `most` copies
  are held: of more rounds each is as likely to be among them (reservoir
  sampling). Draws are functions of seed and round.
  Source: SePPO (semi-policy preference optimisation); sizes are ours.
  """

  iterations: int = ranged(low=1)
  most: int = ranged(4, 1)
  seed: int = 0

  @property
  def copies(self) -> int:
    """The past, and the one that is drawn."""
    return self.most + 1

  def due(self, iteration: Array | int) -> Array | bool:
    """After iterations n, 2 n, ..."""
    return iteration % self.iterations == 0

  def start(self, params: Any) -> Any:
    """The past of round 0."""
    return jax.jit(self._first)(params)

  def current(self, kept: Any) -> Any:
    """The one that was drawn."""
    return kept['now']

  def renewed(self, kept: Any, params: Any) -> Any:
    """A round begins: one of the past is drawn, then params join the past."""
    count = kept['rounds'] + 1  # rounds that started before this one
    key = jax.random.fold_in(jax.random.key(self.seed), count)
    drawn, place = jax.random.split(key)
    held = jnp.minimum(count, self.most)
    drawn = jax.random.randint(drawn, (), 0, held)
    place = jax.random.randint(place, (), 0, count + 1)
    place = jnp.where(count < self.most, count, place)  # else maybe none
    past: list[Any] = []
    now = kept['past'][0]
    for slot, old in enumerate(kept['past']):
      now = _where(drawn == slot, old, now)
      past.append(_where(place == slot, params, old))
    return {'now': now, 'past': tuple(past), 'rounds': count}

  def _first(self, params: Any):
    def copy():
      return jax.tree.map(jnp.copy, params)

    past = tuple(copy() for _ in range(self.most))
    return {'now': copy(), 'past': past, 'rounds': jnp.zeros((), jnp.int32)}


def _where(chosen: Array, new: Any, old: Any):
  return jax.tree.map(lambda n, o: jnp.where(chosen, n, o), new, old)
