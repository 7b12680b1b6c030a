"""SERENE and STAX: novelty finds sparse rewards, emitters exploit them."""

from typing import Any

import jax
import jax.numpy as jnp

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import autoencoder, novelty, worlds
from rl_jax.control.novelty import Serene
from rl_jax.types import Array

STEPS, CHUNKS, GENERATIONS, EMITTERS = 40, 10, 5, 4
HIDDEN, CODE = 2, 4
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


def searched(kind: str, key: Array, chunks: int) -> dict[str, Array]:
  """A run; half of the chunks exploit unless it is novelty only."""
  codes = kind in ('STAX', 'random codes')
  search = Serene(
    genome=GENOME,
    descriptor=CODE if codes else 2,
    slots=1500,
    surprise=0.5 if kind == 'STAX' else 0.0,
  )

  def evaluator(coder: Any):
    def evaluate(genome_NG: Array) -> tuple[Array, Array]:
      place_N2 = last_place(genome_NG)
      reward_N = rewards(place_N2).max(axis=1)
      code_ND, error_N = place_N2, jnp.zeros(len(place_N2))
      if codes:
        code_ND, error_N = autoencoder.encoded(coder, images(place_N2))
      features = jnp.concatenate([code_ND, error_N[:, None]], axis=1)
      return features, reward_N

    return evaluate

  def chunk(carry, key):
    state, coder = carry
    evaluate = evaluator(coder)
    keys = jax.random.split(key, 3)
    generations = 2 * GENERATIONS if kind == 'novelty only' else GENERATIONS

    def explore(state, key):
      return search.explore(evaluate, state, key), None

    def exploit(state, key):
      return search.exploit(evaluate, state, key)

    explored = jax.random.split(keys[0], generations)
    state, _ = jax.lax.scan(explore, state, explored)
    if kind == 'STAX':
      store = state[1]
      frames = images(last_place(store.genome_MG))
      coder = autoencoder.fit(coder, frames, store.on_M, keys[2], 200)
      state = novelty.recomputed(evaluator(coder), state)
    if kind != 'novelty only':
      exploited = jax.random.split(keys[1], EMITTERS)
      state, _ = jax.lax.scan(exploit, state, exploited)
    return (state, coder), None

  coder = autoencoder.init(jax.random.fold_in(key, 1), 256, CODE)
  start = search.begin(evaluator(coder), key), coder
  keys = jax.random.split(jax.random.fold_in(key, 2), chunks)
  (_, archive, rewarded), _ = jax.lax.scan(chunk, start, keys)[0]
  genome_MG = jnp.concatenate([archive.genome_MG, rewarded.genome_MG])
  on_M = jnp.concatenate([archive.on_M, rewarded.on_M])
  return outcome(genome_MG, on_M)


def measure(key_S: Array, scale: float) -> Results:
  """All kinds with as many evaluations."""
  chunks = max(1, round(CHUNKS * scale))
  kinds = ('SERENE', 'novelty only', 'STAX', 'random codes')
  found: dict[str, dict[str, Any]] = {COVERAGE: {}, LEAST: {}}
  for kind in kinds:
    results = policies.over_seeds(
      lambda key, kind=kind: searched(kind, key, chunks), key_S
    )
    for metric, value_S in results.items():
      found[metric][kind] = value_S
  return found


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
