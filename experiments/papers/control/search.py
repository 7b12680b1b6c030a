"""SERENE and STAX: novelty finds sparse rewards, emitters exploit them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import autoencoder, serene, worlds
from rl_jax.control.serene import Search, Serene
from rl_jax.types import Array

STEPS, BUDGET, CHUNK = 40, 8_000, 500  # of a rollout, a run, a chunk
LARGE, GRID, BRED = 20_000, 16, 100  # a run with elites, their cells, children
ELITES = 'MAP-Elites'
HIDDEN, CODE, EPOCHS = 2, 4, 30
# Rounds that decide of stagnation: 160 by the published formula, for a budget
# of 500,000 rollouts.
PATIENCE = 40
GENOME = 2 * HIDDEN + HIDDEN + HIDDEN * 2 + 2
AREAS = ((0.5, 0.5), (5.5, 6.5))  # middles of two far cells, in cells
WIDTH = 1.5  # of an area
COVERAGE = 'coverage of free cells by the archive'
LEAST = 'best reward of the worse of two areas'


def maze() -> worlds.PointMaze:
  """Four rooms; every rollout begins at the same place."""
  return worlds.PointMaze(maze=worlds.ROOMS, start=(2, 3), ends=False)


def last_place(genome_NG: Array) -> Array:
  """Positions [N, 2] after STEPS steps of a controller of two hidden units."""
  world = maze()
  start = world.reset(jax.random.key(0))

  def one(genome_G: Array) -> Array:
    w1, b1, w2, b2 = jnp.split(genome_G, [4, 6, 10])

    def step(state: worlds.Point, _: None):
      hidden = jnp.tanh(w1.reshape(2, 2).T @ world.observe(state) + b1)
      action = jnp.tanh(w2.reshape(2, 2).T @ hidden + b2)
      return world.step(state, action, jax.random.key(0))[0], None

    return jax.lax.scan(step, start, None, length=STEPS)[0].place_2

  return jax.vmap(one)(genome_NG)


def rewards(place_N2: Array) -> Array:
  """1 - distance / WIDTH in each area, [N, areas]; 0 outside."""
  gap = place_N2[:, None] - jnp.asarray(AREAS)[None]
  return jnp.maximum(0.0, 1 - jnp.sqrt((gap**2).sum(-1)) / WIDTH)


def images(place_N2: Array) -> Array:
  """Renders [N, 256]."""
  world = maze()

  def one(place_2: Array) -> Array:
    return world.render(worlds.Point(place_2, place_2)).reshape(-1)

  return jax.vmap(one)(place_N2)


def outcome(genome_NG: Array, on_N: Array) -> dict[str, Array]:
  """Coverage, and the best reward of the worse area."""
  place_N2 = last_place(genome_NG)
  cell = jnp.floor(place_N2).astype(jnp.int32)
  columns = len(worlds.ROOMS[0])
  number_N = jnp.where(on_N > 0, cell[:, 0] * columns + cell[:, 1], -1)
  seen = jax.nn.one_hot(number_N, len(worlds.ROOMS) * columns).max(axis=0)
  best = (rewards(place_N2) * on_N[:, None]).max(axis=0)
  return {COVERAGE: seen.sum() / len(maze().free), LEAST: best.min()}


def evaluator(codes: bool, coder: Any):
  """Genomes -> (descriptors and surprise, rewards)."""

  def evaluate(genome_NG: Array) -> tuple[Array, Array]:
    place_N2 = last_place(genome_NG)
    reward_N = rewards(place_N2).max(axis=1)
    code_ND, error_N = place_N2, jnp.zeros(len(place_N2))
    if codes:
      code_ND, error_N = autoencoder.encoded(coder, images(place_N2))
    return jnp.concatenate([code_ND, error_N[:, None]], axis=1), reward_N

  return evaluate


def kinds() -> dict[str, Serene]:
  """The searches that are compared, with as many rollouts."""
  plain = Serene(
    genome=GENOME, chunk=CHUNK, parents=50, slots=800, patience=PATIENCE
  )
  stax = dataclasses.replace(plain, descriptor=CODE, surprise=0.5)
  return {
    'SERENE': plain,
    'SERENE, UCB': dataclasses.replace(plain, schedule='ucb'),
    'novelty only': dataclasses.replace(plain, schedule='explore'),
    'STAX': stax,
    'random codes': dataclasses.replace(stax, surprise=0.0),
  }


def searched(kind: str, key_S: Array, budget: int) -> dict[str, Array]:
  """A run of every seed.

  The autoencoder of STAX is trained after 1, then 2, 3, ... more chunks that
  explore; that of random codes is never trained.
  """
  search, codes = kinds()[kind], kind in ('STAX', 'random codes')

  def begin(key: Array) -> tuple[Search, Any, Array]:
    coder = autoencoder.init(jax.random.fold_in(key, 1), 256, CODE)
    state = search.begin(evaluator(codes, coder), key)
    return state, coder, jnp.int32(1)

  def chunk(state: Search, coder: Any, key: Array) -> Search:
    after = search.search(evaluator(codes, coder), state, key)
    on = state.evaluations < budget
    return jax.tree.map(lambda new, old: jnp.where(on, new, old), after, state)

  def trained(state: Search, coder: Any, due: Array, key: Array):
    stores = (state.population.genome_NG, state.archive.genome_MG)
    genome_NG = jnp.concatenate([*stores, state.rewarded.genome_MG])
    ones_N = jnp.ones(len(stores[0]))
    on_N = jnp.concatenate([ones_N, state.archive.on_M, state.rewarded.on_M])
    frames = images(last_place(genome_NG))
    new = autoencoder.fit(coder, frames, on_N, key, EPOCHS)
    after = serene.recomputed(evaluator(codes, new), state)
    return jax.tree.map(
      lambda a, b: jnp.where(due, a, b), (after, new), (state, coder)
    )

  state, coder, number_S = jax.jit(jax.vmap(begin))(key_S)
  chunk, trained = jax.jit(jax.vmap(chunk)), jax.jit(jax.vmap(trained))
  place = 0
  while (state.evaluations < budget).any():
    place += 1
    now_S = jax.vmap(lambda key, place=place: jax.random.fold_in(key, place))(
      key_S
    )
    state = chunk(state, coder, now_S)
    due_S = state.explored >= number_S * (number_S + 1) // 2
    if kind == 'STAX' and due_S.any():
      state, coder = trained(state, coder, due_S, now_S)
      number_S += due_S
  genome_SMG = jnp.concatenate(
    [state.archive.genome_MG, state.rewarded.genome_MG], axis=1
  )
  on_SM = jnp.concatenate([state.archive.on_M, state.rewarded.on_M], axis=1)
  return jax.device_get(jax.jit(jax.vmap(outcome))(genome_SMG, on_SM))


def measure(key_S: Array, scale: float) -> Results:
  """All kinds with as many evaluations."""
  budget = max(CHUNK, round(BUDGET * scale))
  found: dict[str, dict[str, Any]] = {COVERAGE: {}, LEAST: {}}
  for kind in kinds():
    for metric, value_S in searched(kind, key_S, budget).items():
      found[metric][kind] = value_S
  return found


def elites(key: Array, budget: int) -> dict[str, Array]:
  """MAP-Elites: the best genome of every cell of places, and its children.

  Children and their deviation are as in SERENE.
  """
  rows, columns = len(worlds.ROOMS), len(worlds.ROOMS[0])
  spread, limit = Serene(genome=GENOME).spread, Serene(genome=GENOME).limit

  def inserted(state: tuple[Array, Array], genome_NG: Array):
    genome_CG, reward_C = state
    place_N2 = last_place(genome_NG)
    reward_N = rewards(place_N2).max(axis=1)
    cell_N2 = jnp.floor(GRID * place_N2 / jnp.array([[rows, columns]]))
    cell_N2 = jnp.clip(cell_N2.astype(jnp.int32), 0, GRID - 1)
    cell_N = cell_N2[:, 0] * GRID + cell_N2[:, 1]
    own_CN = cell_N[None] == jnp.arange(GRID**2)[:, None]
    score_CN = jnp.where(own_CN, reward_N[None], -1.0)
    new_C, best_C = score_CN.max(axis=1), score_CN.argmax(axis=1)
    better_C = new_C > reward_C
    genome_CG = jnp.where(better_C[:, None], genome_NG[best_C], genome_CG)
    return genome_CG, jnp.where(better_C, new_C, reward_C)

  def generation(state: tuple[Array, Array], key: Array):
    genome_CG, reward_C = state
    draw_key, move_key = jax.random.split(key)
    logits_C = jnp.where(reward_C >= 0, 0.0, -jnp.inf)
    parent_N = jax.random.categorical(draw_key, logits_C, shape=(BRED,))
    moves = spread * jax.random.normal(move_key, (BRED, GENOME))
    genome_NG = jnp.clip(genome_CG[parent_N] + moves, -limit, limit)
    return inserted(state, genome_NG), None

  empty = jnp.zeros((GRID**2, GENOME)), jnp.full(GRID**2, -1.0)
  start = inserted(empty, jax.random.normal(key, (BRED, GENOME)))
  keys = jax.random.split(jax.random.fold_in(key, 1), budget // BRED - 1)
  (genome_CG, reward_C), _ = jax.lax.scan(generation, start, keys)
  return outcome(genome_CG, (reward_C >= 0).astype(jnp.float32))


def measure_elites(key_S: Array, scale: float) -> Results:
  """SERENE and MAP-Elites with as many rollouts."""
  budget = max(CHUNK, round(LARGE * scale))
  both = {
    'SERENE': searched('SERENE', key_S, budget),
    ELITES: jax.device_get(
      jax.jit(jax.vmap(lambda key: elites(key, budget)))(key_S)
    ),
  }
  return {
    metric: {kind: found[metric] for kind, found in both.items()}
    for metric in (COVERAGE, LEAST)
  }


SERENE = (
  Claim(
    'SERENE covers at least 0.9 times as much as novelty only',
    COVERAGE,
    'novelty only',
    'SERENE',
    1 / 0.9,
  ),
  Claim(
    'its emitters reach a higher reward in the worse area',
    LEAST,
    'novelty only',
    'SERENE',
  ),
  Claim(
    'the UCB schedule reaches at least 0.9 times what alternating chunks reach',
    LEAST,
    'SERENE',
    'SERENE, UCB',
    1 / 0.9,
  ),
)
STAX = (
  Claim(
    'learned codes cover at least 0.8 times as much as the true position',
    COVERAGE,
    'SERENE',
    'STAX',
    1 / 0.8,
  ),
  Claim(
    'learned codes cover more than random ones',
    COVERAGE,
    'random codes',
    'STAX',
  ),
)
ROW = Row('SERENE (C46) and STAX (C17), four rooms', SERENE + STAX, measure)
ELITES_ROW = Row(
  'SERENE (C46) and MAP-Elites, four rooms, 20,000 rollouts',
  (
    Claim(
      'SERENE reaches a higher reward in the worse area than MAP-Elites',
      LEAST,
      ELITES,
      'SERENE',
    ),
    Claim(
      'SERENE covers at least 0.9 times as much as MAP-Elites',
      COVERAGE,
      ELITES,
      'SERENE',
      1 / 0.9,
    ),
  ),
  measure_elites,
)
