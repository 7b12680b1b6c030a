"""Emitters: small elitist populations around whatever has earned a reward."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.control.novelty import FAR, Evaluate, Population, Store
from rl_jax.types import Array

SPAN = 20  # rounds at both ends of those that decide of stagnation
SHORT = 3  # rounds at both ends of those that an improvement compares


def spread_of(genome_NG: Array, other_MG: Array, least: float) -> Array:
  """A third of the distance to the nearest other genome, [N].

  `least` if there is none; genomes that are equal to it are left out.
  """
  square_NM = ((genome_NG[:, None] - other_MG[None]) ** 2).sum(axis=-1)
  nearest_N = jnp.sqrt(jnp.where(square_NM > 0, square_NM, FAR).min(axis=1))
  return jnp.where(jnp.isfinite(nearest_N), nearest_N / 3, least)


def improvement(first_3: Array, last_3: Array) -> Array:
  """max(0, mean of the last three rounds - mean of the first three), [...]."""
  return jnp.maximum(0.0, last_3.mean(axis=-1) - first_3.mean(axis=-1))


def patience(dim: int, copies: int = 6) -> int:
  """Rounds before an emitter may stagnate: int(20 dim / copies + 120)."""
  return int(20 * dim / copies + 120)


def stagnated(reward_WK: Array, rounds: Array) -> Array:
  """True if the last of W rounds are not better than the first of them.

  Of the rewards of the population in the last W rounds the median, or the
  largest, of the last 20 rounds is not above that of the first 20. False for
  an emitter of at most W rounds.
  """
  first, last = reward_WK[:SPAN], reward_WK[-SPAN:]
  median = jnp.median(first) >= jnp.median(last)
  return (rounds > len(reward_WK)) & (median | (first.max() >= last.max()))


def first_front(score_NC: Array, on_N: Array) -> Array:
  """True for points that are on and that no other dominates.

  A point dominates another if it is at least as large in every column and
  larger in one.
  """
  a, b = score_NC[:, None], score_NC[None]
  beats_NN = (b >= a).all(-1) & (b > a).any(-1) & (on_N > 0)[None]
  return (on_N > 0) & ~beats_NN.any(axis=1)


class Sizes(NamedTuple):
  """Sizes of an emitter."""

  patience: int
  buffer: int


class Emitter(NamedTuple):
  """An emitter, or several in slots, [E, ...].

  most: the largest reward that it has stored. novel: its largest novelty.
  reward_WK: of its population in the last W rounds. begin_3, end_3: mean
  rewards of its first and last three rounds. buffer: individuals that were more
  novel than any before them.
  """

  population: Population
  ancestor_G: Array  # its genome
  ancestor_D: Array  # its descriptor
  spread: Array
  most: Array
  novel: Array
  rounds: Array  # after the first population
  reward_WK: Array
  begin_3: Array
  end_3: Array
  buffer: Store
  on: Array  # 1 in a slot that is used

  @property
  def gain(self) -> Array:
    """Its improvement so far, [...]; 0 in an empty slot."""
    return improvement(self.begin_3, self.end_3) * self.on

  @classmethod
  def born(
    cls,
    population: Population,
    ancestor: tuple[Array, Array],
    spread: Array,
    sizes: Sizes,
  ) -> 'Emitter':
    """After the first population was evaluated; not on yet.

    ancestor: (genome, descriptor), around which the population is.
    """
    mean = population.reward_N.mean()
    values = jnp.zeros((sizes.patience, len(population.reward_N)))
    genome_G, ancestor_D = ancestor
    return cls(
      population=population,
      ancestor_G=genome_G,
      ancestor_D=ancestor_D,
      spread=spread,
      most=jnp.float32(0.0),
      novel=jnp.float32(0.0),
      rounds=jnp.int32(0),
      reward_WK=values.at[-1].set(population.reward_N),
      begin_3=jnp.zeros(SHORT).at[0].set(mean),
      end_3=jnp.zeros(SHORT).at[-1].set(mean),
      buffer=Store.empty(sizes.buffer, len(genome_G), len(ancestor_D)),
      on=jnp.float32(0.0),
    )


def around(
  evaluate: Evaluate,
  genome_NG: Array,
  spread: Array | float,
  limit: float,
  key: Array,
) -> Population:
  """Genomes that were moved by N(0, spread^2), within the limit."""
  move_NG = spread * jax.random.normal(key, genome_NG.shape)
  return Population.of(evaluate, jnp.clip(genome_NG + move_NG, -limit, limit))


def advanced(
  evaluate: Evaluate, emitter: Emitter, limit: float, key: Array
) -> Emitter:
  """A round: two children of each, and the best by reward survive."""
  old = emitter.population
  parent_NG = jnp.repeat(old.genome_NG, 2, axis=0)
  both = old.joined(around(evaluate, parent_NG, emitter.spread, limit, key))
  population = both.best(both.reward_N, len(old.reward_N))
  rounds, mean = emitter.rounds + 1, population.reward_N.mean()
  place = jnp.where(rounds < SHORT, rounds, SHORT)  # outside: dropped
  reward_WK = jnp.roll(emitter.reward_WK, -1, axis=0)
  return emitter._replace(
    population=population,
    rounds=rounds,
    reward_WK=reward_WK.at[-1].set(population.reward_N),
    begin_3=emitter.begin_3.at[place].set(mean, mode='drop'),
    end_3=jnp.roll(emitter.end_3, -1).at[-1].set(mean),
  )


def rewarded(
  emitter: Emitter, store: Store, on: Array
) -> tuple[Emitter, Store]:
  """Stores individuals with more reward than all that it has stored.

  At first only the best one.
  """
  reward_N = emitter.population.reward_N
  new_N = reward_N > emitter.most
  first_N = jnp.arange(len(reward_N)) == jnp.argmax(reward_N)
  new_N &= (emitter.most > 0) | first_N
  most = jnp.maximum(emitter.most, reward_N.max())
  return emitter._replace(most=most), store.add(*emitter.population, new_N * on)


def buffered(emitter: Emitter, novelty_N: Array) -> Emitter:
  """Keeps individuals that are more novel than any of it before."""
  new_N = novelty_N > emitter.novel
  return emitter._replace(
    novel=jnp.maximum(emitter.novel, novelty_N.max()),
    buffer=emitter.buffer.add(*emitter.population, new_N),
  )
