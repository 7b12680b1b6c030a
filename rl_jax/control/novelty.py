"""Search without gradients for sparse rewards: novelty, archives, emitters.

All arrays have fixed sizes, and empty slots are masks: a chunk of the search is
one program, and seeds are `jax.vmap`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control.base import declared
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


def emitter_spread(genome_G: Array, other_NG: Array, least: float) -> Array:
  """A third of the distance to the nearest other genome; `least` if that is 0.

  Genomes that are equal to this one are left out.
  """
  square_N = ((other_NG - genome_G[None]) ** 2).sum(axis=1)
  nearest = jnp.sqrt(jnp.where(square_N > 0, square_N, FAR).min())
  return jnp.where(jnp.isfinite(nearest), nearest / 3, least)


def improvement(mean_R: Array) -> Array:
  """max(0, mean of the last three rounds - mean of the first three)."""
  return jnp.maximum(0.0, mean_R[-3:].mean() - mean_R[:3].mean())


def patience(dim: int) -> int:
  """Steps after which an emitter may stagnate: int(20 dim / 6 + 120)."""
  return int(20 * dim / 6 + 120)


def ucb_score(q: Array, count: Array, total: Array, c: float = 1.0) -> Array:
  """Q + c sqrt(ln N / n), of a scheduler of explore and exploit."""
  return q + c * jnp.sqrt(jnp.log(total) / count)


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

  def add(
    self, genome_NG: Array, descriptor_ND: Array, reward_N: Array, on_N: Array
  ) -> 'Store':
    """With the individuals that are on, in order."""
    size = self.on_M.size
    rank_N = jnp.cumsum(on_N > 0) - 1
    slot_N = jnp.where(on_N > 0, (self.filled + rank_N) % size, size)
    return Store(
      self.genome_MG.at[slot_N].set(genome_NG, mode='drop'),
      self.descriptor_MD.at[slot_N].set(descriptor_ND, mode='drop'),
      self.reward_M.at[slot_N].set(reward_N, mode='drop'),
      self.on_M.at[slot_N].set(1.0, mode='drop'),
      self.filled + (on_N > 0).sum(),
    )


class Population(NamedTuple):
  """The parents, [N, ...]."""

  genome_NG: Array
  descriptor_ND: Array
  reward_N: Array


@declared
class Serene:
  """Novelty search, and emitters around whatever has earned a reward.

  Explore: every parent has `children`; `archived` random children enter the
  archive; the most novel of parents and children survive. Exploit: around the
  rewarded individual that is most novel among the rewarded ones, `copies` with
  deviation emitter_spread; then `rounds` of two children for each, the best by
  reward survive. An emitter that has improved begins at its best individual the
  next time, as that is stored with its reward. surprise: the probability with
  which a generation is ordered by surprise in place of novelty (STAX).

  One emitter runs at a time and for a fixed number of rounds, where SERENE
  draws emitters from a Pareto front of novelty and improvement until they
  stagnate.
  Source: SERENE, core/evolvers/{serene,emitter_evolver,ns}.py.
  """

  genome: int = ranged(low=1, static=True)
  descriptor: int = ranged(2, 1, static=True)
  parents: int = ranged(50, 2, static=True)
  children: int = ranged(2, 1, static=True)
  archived: int = ranged(5, 1, static=True)
  neighbours: int = ranged(15, 1, static=True)
  slots: int = ranged(500, 1, static=True)
  copies: int = ranged(6, 1, static=True)
  rounds: int = ranged(10, 6, static=True)
  spread: float = ranged(0.05, 0.0)
  limit: float = ranged(5.0, 0.0)
  surprise: float = ranged(0.0, 0.0, 1.0)

  def begin(
    self, evaluate: Evaluate, key: Array
  ) -> tuple[Population, Store, Store]:
    """(population, archive, rewarded archive)."""
    genome_NG = jax.random.normal(key, (self.parents, self.genome))
    descriptor_ND, reward_N = evaluate(genome_NG)
    store = Store.empty(self.slots, self.genome, self.descriptor + 1)
    rewarded = store.add(genome_NG, descriptor_ND, reward_N, reward_N > 0)
    return Population(genome_NG, descriptor_ND, reward_N), store, rewarded

  def explore(
    self,
    evaluate: Evaluate,
    state: tuple[Population, Store, Store],
    key: Array,
  ) -> tuple[Population, Store, Store]:
    """A generation; parents * children evaluations."""
    population, archive, rewarded = state
    move_key, pick_key, which_key = jax.random.split(key, 3)
    parent_NG = jnp.repeat(population.genome_NG, self.children, axis=0)
    move = self.spread * jax.random.normal(move_key, parent_NG.shape)
    child_NG = jnp.clip(parent_NG + move, -self.limit, self.limit)
    descriptor_ND, reward_N = evaluate(child_NG)
    both = Population(
      jnp.concatenate([population.genome_NG, child_NG]),
      jnp.concatenate([population.descriptor_ND, descriptor_ND]),
      jnp.concatenate([population.reward_N, reward_N]),
    )
    other_MD = jnp.concatenate(
      [both.descriptor_ND, archive.descriptor_MD, rewarded.descriptor_MD]
    )
    ones_N = jnp.ones(len(both.reward_N))
    on_M = jnp.concatenate([ones_N, archive.on_M, rewarded.on_M])
    score_N = novelty(
      both.descriptor_ND[:, :-1], other_MD[:, :-1], on_M, self.neighbours
    )
    by_surprise = jax.random.uniform(which_key) < self.surprise
    score_N = jnp.where(by_surprise, both.descriptor_ND[:, -1], score_N)
    best_N = jax.lax.top_k(score_N, self.parents)[1]
    picked = jax.random.permutation(pick_key, len(child_NG))[: self.archived]
    picked_N = jnp.zeros(len(child_NG)).at[picked].set(1.0)
    archive = archive.add(child_NG, descriptor_ND, reward_N, picked_N)
    rewarded = rewarded.add(child_NG, descriptor_ND, reward_N, reward_N > 0)
    return jax.tree.map(lambda x: x[best_N], both), archive, rewarded

  def exploit(
    self,
    evaluate: Evaluate,
    state: tuple[Population, Store, Store],
    key: Array,
  ) -> tuple[tuple[Population, Store, Store], Array]:
    """One emitter, and its improvement; nothing without a reward so far."""
    population, archive, rewarded = state
    some = rewarded.on_M.sum() > 0
    code_MD = rewarded.descriptor_MD[:, :-1]
    score_M = novelty(code_MD, code_MD, rewarded.on_M, self.neighbours)
    # The most novel; of equal ones that of the largest reward.
    score_M = score_M + 1e-3 * rewarded.reward_M
    chosen = jnp.argmax(jnp.where(rewarded.on_M > 0, score_M, -FAR))
    genome_G = rewarded.genome_MG[chosen]
    spread = emitter_spread(genome_G, population.genome_NG, self.spread)
    start_key, key = jax.random.split(key)

    def around(genome_NG: Array, key: Array):
      move = spread * jax.random.normal(key, genome_NG.shape)
      genome_NG = jnp.clip(genome_NG + move, -self.limit, self.limit)
      return genome_NG, *evaluate(genome_NG)

    copies_NG = jnp.broadcast_to(genome_G[None], (self.copies, self.genome))

    def one(carry, key):
      (genome_NG, descriptor_ND, reward_N), rewarded = carry
      new = around(jnp.repeat(genome_NG, 2, axis=0), key)
      on_N = (new[2] > reward_N.max()) * some
      rewarded = rewarded.add(*new, on_N)
      both = jax.tree.map(
        lambda a, b: jnp.concatenate([a, b]),
        (genome_NG, descriptor_ND, reward_N),
        new,
      )
      best_N = jax.lax.top_k(both[2], self.copies)[1]
      kept = jax.tree.map(lambda x: x[best_N], both)
      return (kept, rewarded), new[2].mean()

    start = around(copies_NG, start_key), rewarded
    keys_R = jax.random.split(key, self.rounds)
    (_, rewarded), mean_R = jax.lax.scan(one, start, keys_R)
    gain = jnp.where(some, improvement(mean_R), 0.0)
    return (population, archive, rewarded), gain


def recomputed(
  evaluate: Evaluate, state: tuple[Population, Store, Store]
) -> tuple[Population, Store, Store]:
  """With new descriptors, after an autoencoder was trained again.

  Genomes and rewards stay.
  """
  population, archive, rewarded = state
  return (
    population._replace(descriptor_ND=evaluate(population.genome_NG)[0]),
    archive._replace(descriptor_MD=evaluate(archive.genome_MG)[0]),
    rewarded._replace(descriptor_MD=evaluate(rewarded.genome_MG)[0]),
  )
