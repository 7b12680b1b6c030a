"""Novelty, and stores of individuals, for search without gradients.

All arrays have fixed sizes, and empty slots are masks: a chunk of the search is
one program, and seeds are `jax.vmap`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.types import Array

FAR = jnp.inf

# Genomes [N, G] -> (descriptors [N, D + 1], rewards [N]); the last column is a
# surprise, 0 without an autoencoder. The same genome has the same result.
Evaluate = Callable[[Array], tuple[Array, Array]]


def squared_distances(x_ND: Array, y_MD: Array) -> Array:
  """|x - y|^2 by one matrix product, [N, M]."""
  square_N1 = (x_ND**2).sum(axis=1)[:, None]
  square_1M = (y_MD**2).sum(axis=1)[None]
  return jnp.maximum(square_N1 + square_1M - 2 * x_ND @ y_MD.T, 0.0)


def novelty(
  point_ND: Array, other_MD: Array, on_M: Array, neighbours: int
) -> Array:
  """The mean distance to the nearest others, [N]; 0 without any.

  on_M: 1 for the others that count. A point that is among the others is left
  out once, as its distance is the smallest.
  """
  square_NM = squared_distances(point_ND, other_MD)
  square_NM = jnp.where(on_M[None] > 0, square_NM, FAR)
  near_NK = -jax.lax.top_k(-square_NM, neighbours + 1)[0][:, 1:]
  some_NK = jnp.isfinite(near_NK)
  distance_NK = jnp.sqrt(jnp.where(some_NK, near_NK, 0.0))
  return distance_NK.sum(axis=1) / jnp.maximum(some_NK.sum(axis=1), 1)


class Store(NamedTuple):
  """Individuals in slots; of a ring, once it is full."""

  genome_MG: Array
  descriptor_MD: Array
  reward_M: Array
  on_M: Array  # 1 in a slot that is filled
  filled: Array  # so far, the next slot modulo M

  @classmethod
  def empty(cls, size: int, genome: int, descriptor: int) -> 'Store':
    """No slot is filled."""
    return cls(
      jnp.zeros((size, genome)),
      jnp.zeros((size, descriptor)),
      jnp.zeros(size),
      jnp.zeros(size),
      jnp.int32(0),
    )

  def slots(self, on_N: Array) -> Array:
    """Slots of the next individuals that are on; M for those that are not."""
    size = self.on_M.size
    rank_N = jnp.cumsum(on_N > 0) - 1
    return jnp.where(on_N > 0, (self.filled + rank_N) % size, size)

  def add(
    self, genome_NG: Array, descriptor_ND: Array, reward_N: Array, on_N: Array
  ) -> 'Store':
    """With the individuals that are on, in order."""
    slot_N = self.slots(on_N)
    return Store(
      self.genome_MG.at[slot_N].set(genome_NG, mode='drop'),
      self.descriptor_MD.at[slot_N].set(descriptor_ND, mode='drop'),
      self.reward_M.at[slot_N].set(reward_N, mode='drop'),
      self.on_M.at[slot_N].set(1.0, mode='drop'),
      self.filled + (on_N > 0).sum(),
    )


class Population(NamedTuple):
  """Individuals that were evaluated, [N, ...]."""

  genome_NG: Array
  descriptor_ND: Array
  reward_N: Array

  @classmethod
  def of(cls, evaluate: Evaluate, genome_NG: Array) -> 'Population':
    """The genomes, evaluated."""
    return cls(genome_NG, *evaluate(genome_NG))

  def joined(self, other: 'Population') -> 'Population':
    """These, then the others."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), self, other)

  def best(self, score_N: Array, number: int) -> 'Population':
    """The individuals of the largest scores."""
    best_N = jax.lax.top_k(score_N, number)[1]
    return jax.tree.map(lambda x: x[best_N], self)
