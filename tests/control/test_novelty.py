"""Novelty search, emitters and codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import autoencoder, emitters, novelty, serene
from rl_jax.control.emitters import Emitter, Sizes
from rl_jax.control.novelty import Population, Store
from rl_jax.control.serene import EXPLOIT, EXPLORE, Schedule, Serene


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
  genome = jnp.zeros((1, 2))
  others = jnp.array([[0.3, 0.4], [3.0, 0.0], [0.0, 0.0]])
  found = emitters.spread_of(genome, others, 0.05)
  np.testing.assert_allclose(found, [0.166667], rtol=1e-5)
  assert emitters.spread_of(genome, others[2:], 0.05)[0] == jnp.float32(0.05)


def test_numbers_of_emitters_and_schedules():
  """E1: improvement, patience, and UCB."""
  rounds = jnp.array([1.0, 2, 2, 3, 4, 5])
  found = emitters.improvement(rounds[:3], rounds[3:])
  np.testing.assert_allclose(found, 2.333333, rtol=1e-5)
  assert emitters.improvement(rounds[3:], rounds[:3]) == 0
  assert emitters.patience(10) == 153
  found = serene.ucb_score(0.2, 3.0, 10.0)
  np.testing.assert_allclose(found, 1.076087, rtol=1e-5)


def test_schedules_by_hand():
  """E1: two new emitters reward exploring with -.964028; then UCB decides."""
  some = jnp.bool_(True)
  start = Schedule(jnp.zeros(2), jnp.zeros(2), jnp.int32(EXPLOIT))
  assert start.pick('ucb', some) == EXPLORE
  one = start.updated(jnp.int32(EXPLORE), jnp.float32(2.0))
  np.testing.assert_allclose(one.q_2, [-0.964028, 0.0], rtol=1e-5)
  assert one.pick('ucb', some) == EXPLOIT  # never tried
  assert one.pick('ucb', jnp.bool_(False)) == EXPLORE
  assert one.pick('alternating', some) == EXPLOIT
  assert one.pick('explore', some) == EXPLORE
  two = one.updated(jnp.int32(EXPLOIT), jnp.float32(-1.0))
  np.testing.assert_allclose(two.q_2[1], np.tanh(-1), rtol=1e-5)
  # -.964 and -.762 with equal counts; exploring once more would be worse.
  assert two.pick('ucb', some) == EXPLOIT
  three = two.updated(jnp.int32(EXPLOIT), jnp.float32(0.0))
  np.testing.assert_allclose(three.q_2[1], np.tanh(-1) / 2, rtol=1e-5)
  bonus = np.sqrt(np.log(3) / np.array([1.0, 2.0]))
  best = np.argmax(np.array(three.q_2) + bonus)
  assert three.pick('ucb', some) == best
  assert three.pick('alternating', some) == EXPLORE


def test_stagnation_by_hand():
  """E0: flat rewards stagnate, rising ones do not, nor does a young emitter."""
  flat = jnp.ones((50, 6))
  assert emitters.stagnated(flat, jnp.int32(51))
  assert not emitters.stagnated(flat, jnp.int32(50))
  rising = flat * jnp.arange(50.0)[:, None]
  assert not emitters.stagnated(rising, jnp.int32(51))
  # Medians rise, but the largest reward came first: "or" of the two.
  early = rising.at[3, 0].set(100.0)
  assert emitters.stagnated(early, jnp.int32(51))


def test_the_first_front_by_hand():
  """E0: (1, 3) and (3, 1) are on it, (1, 1) is not; the last is off."""
  score = jnp.array([[1.0, 3], [3, 1], [1, 1], [4, 4]])
  found = emitters.first_front(score, jnp.array([1.0, 1, 1, 0]))
  np.testing.assert_array_equal(found, [True, True, False, False])


def test_an_emitter_climbs_and_stores_by_hand():
  """E0: the best of old and new survive, and what beats its best is stored."""
  genome = jnp.array([[0.0, 1.0], [0.0, 2.0]])
  population = Population.of(slope, genome)
  ancestor = jnp.array([0.0, 1.5]), jnp.zeros(3)
  emitter = Emitter.born(population, ancestor, jnp.float32(0.5), Sizes(40, 2))
  assert emitter.reward_WK[-1].tolist() == [1.0, 2.0]
  store = Store.empty(8, 2, 3)
  emitter, store = emitters.rewarded(emitter, store, jnp.bool_(True))
  assert store.on_M.sum() == 1 and store.reward_M[0] == 2  # the best at first
  after = emitters.advanced(slope, emitter, 5.0, jax.random.key(0))
  both = jnp.sort(jnp.concatenate([population.reward_N, after.population[2]]))
  assert after.population.reward_N.min() >= both[1]
  assert after.rounds == 1 and (after.begin_3 > 0).sum() == 2
  np.testing.assert_allclose(after.end_3[1:], after.begin_3[:2], rtol=1e-6)
  new, more = emitters.rewarded(after, store, jnp.bool_(True))
  beat = (after.population.reward_N > 2).sum()
  assert more.on_M.sum() == 1 + beat
  assert new.most == jnp.maximum(2.0, after.population.reward_N.max())
  _, same = emitters.rewarded(after, store, jnp.bool_(False))
  assert same.on_M.sum() == 1
  found = emitters.buffered(after._replace(novel=1.0), jnp.array([0.5, 3.0]))
  assert found.novel == 3 and found.buffer.on_M.sum() == 1


def slope(genome_NG):
  """The reward is the second number."""
  pad = jnp.zeros((len(genome_NG), 1))
  return jnp.concatenate([genome_NG, pad], axis=1), genome_NG[:, 1]


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
  genome=2,
  chunk=200,
  parents=10,
  archived=2,
  neighbours=3,
  slots=60,
  spread=0.3,
  patience=40,
)


def searched(search, evaluate, chunks=8):
  state = search.begin(evaluate, jax.random.key(0))

  @jax.jit
  def run(state):
    def one(state, key):
      state = search.search(evaluate, state, key)
      return state, (state.schedule.last, state.evaluations)

    keys = jax.random.split(jax.random.key(1), chunks)
    return jax.lax.scan(one, state, keys)

  return run(state)


def test_search_spreads_and_climbs():
  """The rewarded archive improves far beyond the first reward."""
  state, (arm_C, evaluations_C) = searched(SMALL, line)
  rewarded = state.rewarded
  first = (rewarded.reward_M * (jnp.arange(60) < 3)).max()
  assert rewarded.reward_M.max() > first + 0.5
  assert state.population.genome_NG.shape == (10, 2)
  # Chunks alternate once something has earned a reward.
  where = int(np.argmax(arm_C == EXPLOIT))
  assert arm_C[where] == EXPLOIT
  np.testing.assert_array_equal(
    arm_C[where:], (EXPLOIT + np.arange(8 - where)) % 2
  )
  assert state.explored == (arm_C == EXPLORE).sum()
  spent = np.diff(np.concatenate([[10], evaluations_C]))
  assert spent[arm_C == EXPLORE].tolist() == [200] * int(state.explored)
  # A chunk that exploits ends with the round or trial that exhausts it.
  assert 0 < spent[arm_C == EXPLOIT].max() < 200 + 66
  assert state.archive.on_M.sum() >= min(60, 20 * int(state.explored))


def test_emitters_that_stagnate_end():
  """E0: on a bounded reward they end, and their buffers reach the archive."""

  def bounded(genome_NG):
    code, reward = line(genome_NG)
    return code, jnp.minimum(reward, 1.0)

  search = SMALL.replace(chunk=3000, slots=400)
  state = search.begin(bounded, jax.random.key(0))
  explore = jax.jit(lambda s, k: search.explore(bounded, s, k))
  exploit = jax.jit(lambda s, k: search.exploit(bounded, s, k))
  for key in jax.random.split(jax.random.key(1), 5):
    state = explore(state, key)
  before = state.archive.on_M.sum()
  after = exploit(state, jax.random.key(2))
  assert after.archive.on_M.sum() > before
  assert after.rewarded.reward_M.max() <= 1
  rounds = jnp.where(after.emitters.on > 0, after.emitters.rounds, 0)
  assert (rounds < 80).all()


def test_without_rewards_it_is_novelty_search():
  """E0: emitters do nothing, so that only exploration is left."""

  def poor(genome_NG):
    return line(genome_NG)[0], jnp.zeros(len(genome_NG))

  state, (arm_C, _) = searched(SMALL, poor)
  assert (arm_C == EXPLORE).all() and not state.rewarded.on_M.any()
  plain, _ = searched(SMALL.replace(schedule='explore'), poor)
  np.testing.assert_array_equal(
    state.population.genome_NG, plain.population.genome_NG
  )
  idle = SMALL.exploit(poor, state, jax.random.key(0))
  assert idle.evaluations == state.evaluations
  np.testing.assert_array_equal(idle.archive.on_M, state.archive.on_M)


def test_surprise_orders_a_generation():
  """E0: with probability 1 the survivors are the most surprising ones."""

  def odd(genome_NG):
    code, reward = line(genome_NG)
    return code.at[:, -1].set(genome_NG[:, 1]), 0 * reward

  search = SMALL.replace(surprise=1.0)
  state = search.begin(odd, jax.random.key(0))
  after = search.explore(odd, state, jax.random.key(1))
  before = jnp.sort(state.population.genome_NG[:, 1])
  assert after.population.genome_NG[:, 1].min() >= before[5]


def test_new_codes_leave_genomes_and_rewards():
  """E0."""
  state, _ = searched(SMALL, line, chunks=3)

  def other(genome_NG):
    code, reward = line(genome_NG)
    return 2 * code, reward + 1

  after = serene.recomputed(other, state)

  def doubled(genome_NG):
    return 2 * jnp.concatenate([genome_NG, 0 * genome_NG[..., :1]], axis=-1)

  for name in ('population', 'archive', 'rewarded', 'candidates'):
    before, now = getattr(state, name), getattr(after, name)
    np.testing.assert_array_equal(now[1], doubled(before[0]))
    np.testing.assert_array_equal(now[0], before[0])
    np.testing.assert_array_equal(now[2], before[2])
  np.testing.assert_array_equal(
    after.emitters.ancestor_D, doubled(state.emitters.ancestor_G)
  )
  np.testing.assert_array_equal(after.emitters.on, state.emitters.on)


def test_an_autoencoder_learns_its_images():
  """The error falls to a third; images that are off are not learnt."""
  place = jnp.arange(200) / 200
  grid = jnp.linspace(0, 1, 16)
  image = jnp.exp(-((place[:, None] - grid[None]) ** 2) * 50)
  on = (jnp.arange(200) < 100).astype(jnp.float32)
  params = autoencoder.init(jax.random.key(0), 16, 2)
  before = autoencoder.encoded(params, image)[1]
  fit = jax.jit(lambda p: autoencoder.fit(p, image, on, jax.random.key(1), 400))
  after = autoencoder.encoded(fit(params), image)[1]
  assert after[:100].mean() < before[:100].mean() / 3
  assert after[100:].mean() > 3 * after[:100].mean()


def test_an_autoencoder_stops_when_others_get_worse():
  """E0: with noise it ends early, so that more epochs change nothing."""
  image = jax.random.uniform(jax.random.key(3), (12, 16))
  params = autoencoder.init(jax.random.key(0), 16, 8)

  def fit(epochs):
    return jax.jit(
      lambda p: autoencoder.fit(
        p, image, jnp.ones(12), jax.random.key(1), epochs
      )
    )(params)

  jax.tree.map(np.testing.assert_array_equal, fit(3000), fit(4000))


@pytest.mark.parametrize(
  'field, value', [('copies', 0), ('patience', 10), ('chunk', 0)]
)
def test_sizes_are_checked(field, value):
  with pytest.raises(ValueError, match=f'Serene.{field} = {value}'):
    Serene(genome=2, **{field: value})
