"""Novelty search, emitters and codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import autoencoder, novelty
from rl_jax.control.novelty import Serene, Store


def test_novelty_by_hand():
  """E1: the mean of the two nearest of (0,0), (1,0), (0,2), (3,4)."""
  point = jnp.array([[0.0, 0], [1, 0], [0, 2], [3, 4]])
  found = novelty.novelty(point, point, jnp.ones(4), 2)
  np.testing.assert_allclose(found[0], 1.5, rtol=1e-5)
  two = novelty.novelty(point, point, jnp.array([1.0, 1, 0, 0]), 2)
  np.testing.assert_allclose(two[0], 1.0, rtol=1e-5)
  none = novelty.novelty(point, point, jnp.array([1.0, 0, 0, 0]), 2)
  assert none[0] == 0


def test_spread_by_hand():
  """E1: a third of the nearest distance, .5; equal genomes are left out."""
  genome = jnp.zeros(2)
  others = jnp.array([[0.3, 0.4], [3.0, 0.0], [0.0, 0.0]])
  found = novelty.emitter_spread(genome, others, 0.05)
  np.testing.assert_allclose(found, 0.166667, rtol=1e-5)
  assert novelty.emitter_spread(genome, others[2:], 0.05) == jnp.float32(0.05)


def test_numbers_of_emitters_and_schedules():
  """E1: improvement, patience, UCB, and the rewards of the schedule."""
  rounds = jnp.array([1.0, 2, 2, 3, 4, 5])
  np.testing.assert_allclose(novelty.improvement(rounds), 2.333333, rtol=1e-5)
  assert novelty.improvement(rounds[::-1]) == 0
  assert novelty.patience(10) == 153
  found = novelty.ucb_score(0.2, 3.0, 10.0)
  np.testing.assert_allclose(found, 1.076087, rtol=1e-5)
  np.testing.assert_allclose(-np.tanh(2), -0.964028, rtol=1e-5)


def test_a_store_is_a_ring():
  """E0: only what is on is stored, and the oldest goes first."""
  store = Store.empty(3, 1, 1)

  def add(store, values, on):
    x = jnp.array(values)[:, None]
    return store.add(x, x, x[:, 0], jnp.array(on))

  store = add(store, [1.0, 2.0], [1.0, 0.0])
  np.testing.assert_array_equal(store.on_M, [1, 0, 0])
  store = add(store, [3.0, 4.0, 5.0], [1.0, 1.0, 1.0])
  np.testing.assert_array_equal(store.reward_M, [5, 3, 4])
  np.testing.assert_array_equal(store.on_M, 1)


def line(genome_NG):
  """A descriptor of two numbers, a reward beyond 1.5 of the first."""
  reward = jnp.maximum(0.0, genome_NG[:, 0] - 1.5)
  pad = jnp.zeros((len(genome_NG), 1))
  return jnp.concatenate([genome_NG, pad], axis=1), reward


SMALL = Serene(
  genome=2, parents=10, archived=2, neighbours=3, slots=60, spread=0.3
)


def searched(search, evaluate, generations=15):
  state = search.begin(evaluate, jax.random.key(0))

  def one(state, key):
    state = search.explore(evaluate, state, key)
    return search.exploit(evaluate, state, key)

  keys = jax.random.split(jax.random.key(1), generations)
  return jax.jit(lambda s: jax.lax.scan(one, s, keys))(state)


def test_search_spreads_and_climbs():
  """The rewarded archive improves far beyond the first reward."""
  (population, archive, rewarded), gain = searched(SMALL, line)
  assert archive.on_M.sum() == 30
  first = (rewarded.reward_M * (jnp.arange(60) < 3)).max()
  assert rewarded.reward_M.max() > first + 0.5
  assert gain.max() > 0 and population.genome_NG.shape == (10, 2)


def test_without_rewards_it_is_novelty_search():
  """E0: emitters do nothing, so that only exploration is left."""

  def poor(genome_NG):
    return line(genome_NG)[0], jnp.zeros(len(genome_NG))

  state, gain = searched(SMALL, poor)
  assert not gain.any() and not state[2].on_M.any()
  plain = SMALL.begin(poor, jax.random.key(0))
  for key in jax.random.split(jax.random.key(1), 15):
    plain = jax.jit(lambda s, k: SMALL.explore(poor, s, k))(plain, key)
  np.testing.assert_allclose(
    state[0].genome_NG, plain[0].genome_NG, rtol=1e-5, atol=1e-6
  )


def test_surprise_orders_a_generation():
  """E0: with probability 1 the survivors are the most surprising ones."""

  def odd(genome_NG):
    code, reward = line(genome_NG)
    return code.at[:, -1].set(genome_NG[:, 1]), 0 * reward

  search = SMALL.replace(surprise=1.0)
  state = search.begin(odd, jax.random.key(0))
  after = search.explore(odd, state, jax.random.key(1))
  assert after[0].genome_NG[:, 1].min() >= jnp.sort(state[0].genome_NG[:, 1])[5]


def test_new_codes_leave_genomes_and_rewards():
  """E0."""
  state, _ = searched(SMALL, line, generations=3)

  def other(genome_NG):
    code, reward = line(genome_NG)
    return 2 * code, reward + 1

  after = novelty.recomputed(other, state)
  for before, now in zip(state, after, strict=True):
    np.testing.assert_array_equal(
      now[1],
      2 * jnp.concatenate([before[0], jnp.zeros((len(before[0]), 1))], axis=1),
    )
    np.testing.assert_array_equal(now[0], before[0])
    np.testing.assert_array_equal(now[2], before[2])


def test_an_autoencoder_learns_its_images():
  """The error falls to a third; images that are off are not learnt."""
  place = jnp.arange(20) / 20
  grid = jnp.linspace(0, 1, 16)
  image = jnp.exp(-((place[:, None] - grid[None]) ** 2) * 50)
  on = (jnp.arange(20) < 10).astype(jnp.float32)
  params = autoencoder.init(jax.random.key(0), 16, 2)
  before = autoencoder.encoded(params, image)[1]
  fit = jax.jit(lambda p: autoencoder.fit(p, image, on, jax.random.key(1), 400))
  after = autoencoder.encoded(fit(params), image)[1]
  assert after[:10].mean() < before[:10].mean() / 3
  assert after[10:].mean() > 3 * after[:10].mean()


def test_sizes_are_checked():
  with pytest.raises(ValueError, match='Serene.rounds = 3'):
    Serene(genome=2, rounds=3)
