"""SERENE: novelty search that alternates with emitters; STAX on top of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.control import emitters
from rl_jax.control.base import declared
from rl_jax.control.emitters import Emitter, Sizes
from rl_jax.control.novelty import FAR, Evaluate, Population, Store, novelty
from rl_jax.types import Array

EXPLORE, EXPLOIT = range(2)
TRIAL = 5  # rounds after which a candidate is an emitter or forgotten


def ucb_score(q: Array, count: Array, total: Array, c: float = 1.0) -> Array:
  """Q + c sqrt(ln N / n), of a scheduler of explore and exploit."""
  return q + c * jnp.sqrt(jnp.log(total) / count)


class Schedule(NamedTuple):
  """Values and counts of chunks that explored and exploited."""

  q_2: Array
  count_2: Array
  last: Array  # the arm of the last chunk

  def pick(self, kind: str, some: Array) -> Array:
    """The arm of the next chunk; nothing is exploited without emitters."""
    if kind == 'explore':
      return jnp.int32(EXPLORE)
    if kind == 'alternating':
      arm = jnp.where(self.last == EXPLORE, EXPLOIT, EXPLORE)
    else:
      total = jnp.maximum(self.count_2.sum(), 1)
      score_2 = ucb_score(self.q_2, jnp.maximum(self.count_2, 1), total)
      arm = jnp.argmax(jnp.where(self.count_2 > 0, score_2, FAR))
    return jnp.where(some, arm, EXPLORE)

  def updated(self, arm: Array, change: Array) -> 'Schedule':
    """With the reward of a chunk; values are means.

    That is -tanh(new emitters), or tanh(their change) if the chunk exploits.
    """
    reward = jnp.where(arm == EXPLORE, -1, 1) * jnp.tanh(1.0 * change)
    count_2 = self.count_2.at[arm].add(1)
    q_2 = self.q_2.at[arm].add((reward - self.q_2[arm]) / count_2[arm])
    return Schedule(q_2, count_2, arm)


class Search(NamedTuple):
  """The state of a search."""

  population: Population
  archive: Store
  rewarded: Store
  candidates: Store
  spread_M: Array  # of the candidates
  emitters: Emitter  # [E, ...]
  schedule: Schedule
  evaluations: Array
  explored: Array  # chunks that explored

  def emitting(self) -> Array:
    """The number of candidates and emitters."""
    return self.candidates.on_M.sum() + self.emitters.on.sum()

  def others(self) -> tuple[Array, Array]:
    """(descriptors [M, D], which count [M]) that novelty compares with."""
    stores = (self.archive, self.rewarded)
    code_MD = jnp.concatenate(
      [self.population.descriptor_ND, *(x.descriptor_MD for x in stores)]
    )
    ones_N = jnp.ones(len(self.population.reward_N))
    on_M = jnp.concatenate([ones_N, *(x.on_M for x in stores)])
    return code_MD[:, :-1], on_M


@declared
class Serene:
  """Chunks of about `chunk` evaluations, which explore or exploit.

  Explore: every parent has `children`; `archived` random children enter the
  archive; the most novel of parents and children survive. Everything that earns
  a reward becomes a candidate once. surprise: the probability with which a
  generation is ordered by surprise in place of novelty (STAX).

  Exploit: while more than a third of the chunk is left, candidates are tried,
  those that are most novel among the rewarded first: `copies` with deviation
  emitters.spread_of, then five rounds. Those that improve become emitters. The
  rest of the chunk is of emitters, each drawn from the first Pareto front of
  (novelty, improvement), until it stagnates. `archived` of what was novel in a
  stagnated emitter enter the archive.

  schedule: 'alternating' chunks, 'ucb' over the two kinds, or 'explore', which
  is novelty search. patience: rounds
  that decide of stagnation; None is emitters.patience(genome). Once `tried`
  candidates or `held` emitters are there, the oldest candidate and the emitter
  that improves least give way; of a buffer the latest individuals are kept.
  Source: SERENE, core/evolvers/{serene,emitter_evolver,ns}.py; STAX,
  core/schedulers/ucb.py.
  """

  genome: int = ranged(low=1, static=True)
  descriptor: int = ranged(2, 1, static=True)
  chunk: int = ranged(1000, 1, static=True)
  parents: int = ranged(100, 2, static=True)
  children: int = ranged(2, 1, static=True)
  archived: int = ranged(5, 1, static=True)
  neighbours: int = ranged(15, 1, static=True)
  slots: int = ranged(500, 1, static=True)
  copies: int = ranged(6, 1, static=True)
  tried: int = ranged(64, 1, static=True)
  held: int = ranged(8, 1, static=True)
  patience: int | None = ranged(None, 2 * emitters.SPAN, static=True)
  schedule: str = chosen('alternating', ('alternating', 'ucb', 'explore'))
  spread: float = ranged(0.05, 0.0)
  limit: float = ranged(5.0, 0.0)
  surprise: float = ranged(0.0, 0.0, 1.0)

  @property
  def sizes(self) -> Sizes:
    """Sizes of emitters."""
    rounds = self.patience
    if rounds is None:
      rounds = emitters.patience(self.genome, self.copies)
    return Sizes(rounds, self.archived)

  def begin(self, evaluate: Evaluate, key: Array) -> Search:
    """Genomes from N(0, I)."""
    genome_NG = jax.random.normal(key, (self.parents, self.genome))
    population = Population.of(evaluate, genome_NG)
    D = self.descriptor + 1
    store = Store.empty(self.slots, self.genome, D)
    nobody = jax.tree.map(
      lambda x: jnp.zeros((self.copies, *x.shape[1:])), population
    )
    ancestor = jnp.zeros(self.genome), jnp.zeros(D)
    none = Emitter.born(nobody, ancestor, jnp.float32(0.0), self.sizes)
    state = Search(
      population=population,
      archive=store,
      rewarded=store,
      candidates=Store.empty(self.tried, self.genome, D),
      spread_M=jnp.zeros(self.tried),
      emitters=jax.tree.map(lambda x: jnp.stack([x] * self.held), none),
      schedule=Schedule(jnp.zeros(2), jnp.zeros(2), jnp.int32(EXPLOIT)),
      evaluations=jnp.int32(self.parents),
      explored=jnp.int32(0),
    )
    return self._found(state, population, genome_NG)

  def _found(self, state: Search, new: Population, other_MG: Array) -> Search:
    """Stores individuals with a reward, which become candidates."""
    on_N = new.reward_N > 0
    spread_N = emitters.spread_of(new.genome_NG, other_MG, self.spread)
    slot_N = state.candidates.slots(on_N)
    return state._replace(
      rewarded=state.rewarded.add(*new, on_N),
      candidates=state.candidates.add(*new, on_N),
      spread_M=state.spread_M.at[slot_N].set(spread_N, mode='drop'),
    )

  def explore(self, evaluate: Evaluate, state: Search, key: Array) -> Search:
    """A generation; parents * children evaluations."""
    move_key, pick_key, which_key = jax.random.split(key, 3)
    parent_NG = jnp.repeat(state.population.genome_NG, self.children, axis=0)
    children = emitters.around(
      evaluate, parent_NG, self.spread, self.limit, move_key
    )
    both = state.population.joined(children)
    code_MD, on_M = state._replace(population=both).others()
    score_N = novelty(
      both.descriptor_ND[:, :-1], code_MD, on_M, self.neighbours
    )
    by_surprise = jax.random.uniform(which_key) < self.surprise
    score_N = jnp.where(by_surprise, both.descriptor_ND[:, -1], score_N)
    count = len(parent_NG)
    picked = jax.random.permutation(pick_key, count)[: self.archived]
    picked_N = jnp.zeros(count).at[picked].set(1.0)
    state = self._found(state, children, both.genome_NG)
    return state._replace(
      population=both.best(score_N, self.parents),
      archive=state.archive.add(*children, picked_N),
      evaluations=state.evaluations + count,
    )

  def _try(
    self, evaluate: Evaluate, carry: tuple[Search, Array], key: Array
  ) -> tuple[tuple[Search, Array], None]:
    """A candidate, if there is one and a third of the chunk is left."""
    state, left = carry
    store = state.candidates
    score_M = self._novelty_among_rewarded(state, store.descriptor_MD)
    place = jnp.argmax(jnp.where(store.on_M > 0, score_M, -FAR))
    on = (store.on_M[place] > 0) & (left > self.chunk / 3)
    first_key, key = jax.random.split(key)
    genome_NG = jnp.repeat(store.genome_MG[place][None], self.copies, axis=0)
    spread = state.spread_M[place]
    begin = emitters.around(evaluate, genome_NG, spread, self.limit, first_key)
    ancestor = store.genome_MG[place], store.descriptor_MD[place]
    emitter = Emitter.born(begin, ancestor, spread, self.sizes)

    def one(carry, key):
      emitter = emitters.advanced(evaluate, carry[0], self.limit, key)
      return emitters.rewarded(emitter, carry[1], on), None

    (emitter, rewarded), _ = jax.lax.scan(
      one, (emitter, state.rewarded), jax.random.split(key, TRIAL)
    )
    own_D = emitter.ancestor_D[None, :-1]
    novel = novelty(own_D, *state.others(), self.neighbours)[0]
    emitter = emitter._replace(novel=novel, on=jnp.float32(1.0))
    worst = jnp.argmin(
      jnp.where(state.emitters.on > 0, state.emitters.gain, -1)
    )
    kept = on & (emitter.gain > state.emitters.gain[worst])
    cost = on * self.copies * (1 + 2 * TRIAL)
    state = state._replace(
      rewarded=rewarded,
      candidates=store._replace(on_M=store.on_M.at[place].multiply(1.0 - on)),
      emitters=_put(state.emitters, worst, emitter, kept),
      evaluations=state.evaluations + cost,
    )
    return (state, left - cost), None

  def _novelty_among_rewarded(self, state: Search, code_ND: Array) -> Array:
    return novelty(
      code_ND[:, :-1],
      state.rewarded.descriptor_MD[:, :-1],
      state.rewarded.on_M,
      self.neighbours,
    )

  def _drawn(self, state: Search, key: Array) -> Array:
    """The slot of an emitter of the first front; -1 without one."""
    novel_E = self._novelty_among_rewarded(state, state.emitters.ancestor_D)
    score_E2 = jnp.stack([novel_E, state.emitters.gain], axis=1)
    front_E = emitters.first_front(score_E2, state.emitters.on)
    drawn = jax.random.categorical(key, jnp.where(front_E, 0.0, -FAR))
    return jnp.where(front_E.any(), drawn, -1)

  def _round(
    self, evaluate: Evaluate, carry: tuple[Search, Array, Array], key: Array
  ) -> tuple[tuple[Search, Array, Array], None]:
    """A round of an emitter, which is drawn where none is at work."""
    state, left, slot = carry
    draw_key, key = jax.random.split(key)
    slot = jnp.where(slot < 0, self._drawn(state, draw_key), slot)
    on = (slot >= 0) & (left > 0)
    emitter = jax.tree.map(lambda x: x[jnp.maximum(slot, 0)], state.emitters)
    emitter = emitters.advanced(evaluate, emitter, self.limit, key)
    emitter, rewarded = emitters.rewarded(emitter, state.rewarded, on)
    novel_N = novelty(
      emitter.population.descriptor_ND[:, :-1],
      *state.others(),
      self.neighbours,
    )
    emitter = emitters.buffered(emitter, novel_N)
    ends = emitters.stagnated(emitter.reward_WK, emitter.rounds)
    buffer = emitter.buffer
    archive = state.archive.add(
      buffer.genome_MG,
      buffer.descriptor_MD,
      buffer.reward_M,
      buffer.on_M * on * ends,
    )
    emitter = emitter._replace(on=1.0 - ends)
    cost = on * 2 * self.copies
    state = state._replace(
      archive=archive,
      rewarded=rewarded,
      emitters=_put(state.emitters, jnp.maximum(slot, 0), emitter, on),
      evaluations=state.evaluations + cost,
    )
    return (state, left - cost, jnp.where(ends, -1, slot)), None

  def exploit(self, evaluate: Evaluate, state: Search, key: Array) -> Search:
    """Candidates, then emitters; at most about `chunk` evaluations."""
    first, second = jax.random.split(key)
    trial = self.copies * (1 + 2 * TRIAL)
    tries = -(-2 * self.chunk // (3 * trial))
    rounds = -(-self.chunk // (2 * self.copies))
    (state, left), _ = jax.lax.scan(
      lambda carry, key: self._try(evaluate, carry, key),
      (state, jnp.int32(self.chunk)),
      jax.random.split(first, tries),
    )
    (state, _, _), _ = jax.lax.scan(
      lambda carry, key: self._round(evaluate, carry, key),
      (state, left, jnp.int32(-1)),
      jax.random.split(second, rounds),
    )
    return state

  def search(self, evaluate: Evaluate, state: Search, key: Array) -> Search:
    """A chunk, as the schedule says."""
    generations = max(1, self.chunk // (self.parents * self.children))
    some = state.emitting() > 0
    arm = state.schedule.pick(self.schedule, some)

    def explored(key: Array) -> Search:
      found, _ = jax.lax.scan(
        lambda state, key: (self.explore(evaluate, state, key), None),
        state,
        jax.random.split(key, generations),
      )
      return found._replace(explored=found.explored + 1)

    def exploited(key: Array) -> Search:
      return self.exploit(evaluate, state, key)

    after = jax.lax.switch(arm, (explored, exploited), key)
    change = after.emitting() - state.emitting()
    return after._replace(schedule=state.schedule.updated(arm, change))


def _put(every: Emitter, slot: Array, emitter: Emitter, on: Array) -> Emitter:
  """The emitters with another one in a slot, if it is on."""
  return jax.tree.map(
    lambda x, new: x.at[slot].set(jnp.where(on, new, x[slot])), every, emitter
  )


def recomputed(evaluate: Evaluate, state: Search) -> Search:
  """With new descriptors, after an autoencoder was trained again.

  Genomes and rewards stay. Ancestors of emitters and their buffers get new
  ones, too; populations of emitters do with their next round.
  """

  def code(genome_MG: Array) -> Array:
    return evaluate(genome_MG)[0]

  def again(store: Store) -> Store:
    return store._replace(descriptor_MD=code(store.genome_MG))

  population = state.population
  return state._replace(
    population=population._replace(descriptor_ND=code(population.genome_NG)),
    archive=again(state.archive),
    rewarded=again(state.rewarded),
    candidates=again(state.candidates),
    emitters=state.emitters._replace(
      ancestor_D=code(state.emitters.ancestor_G),
      buffer=jax.vmap(again)(state.emitters.buffer),
    ),
  )
