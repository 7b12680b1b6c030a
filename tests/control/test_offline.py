"""The offline learner, by its pieces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import actors, offline, online, worlds
from rl_jax.control.offline import (
  Advantaged,
  DataSet,
  Expectile,
  Family,
  Learned,
  Nearest,
  Offline,
  ToData,
  Weighted,
)
from rl_jax.control.unroll import histories

EVERY = {
  'TD3+BC': Offline(),
  'PRDC': Offline(constraint=Nearest()),
  'A2PR': Offline(constraint=Advantaged()),
  'IQL': Offline(critic=Expectile(), constraint=Weighted()),
  'FamO2O': Offline(
    critic=Expectile(), constraint=Weighted(), balance=Family()
  ),
}


def toward_one(number=128):
  """A bandit on a line: reward 1 - |a - s|, episodes of one step."""
  keys = jax.random.split(jax.random.key(0), 2)
  obs = jax.random.uniform(keys[0], (number, 1), minval=-0.5, maxval=0.5)
  action = jax.random.uniform(keys[1], (number, 1), minval=-1.0)
  reward = 1 - jnp.abs(action - obs)[:, 0]
  done = jnp.ones(number)
  return DataSet(obs=obs, action=action, reward=reward, next_obs=obs, done=done)


def test_nearest_action_by_hand():
  """E1: three rows; beta decides between the action and the state."""
  data = DataSet(
    obs=jnp.array([[0.0], [0.2], [1.0]]),
    action=jnp.array([[1.0], [-1.0], [0.0]]),
    reward=jnp.zeros(3),
    next_obs=jnp.zeros((3, 1)),
    done=jnp.zeros(3),
  )
  row_NM, far_N = offline.nearest_states(data.obs, 3)
  np.testing.assert_array_equal(row_NM, [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
  np.testing.assert_allclose(far_N, [1.0, 0.8, 1.0], rtol=1e-6)
  s, mu = jnp.array([0.15]), jnp.array([-0.2])
  for beta, action, square, loss in (
    (0.1, 0.0, 0.047225, 0.04),
    (2.0, -1.0, 0.65, 0.64),
    (0.0, 0.0, 0.04, 0.04),  # the distance to the set of all actions
  ):
    found, distance = offline.nearest_action(s, mu, jnp.arange(3), data, beta)
    assert found[0] == action
    np.testing.assert_allclose(distance**2, square, rtol=1e-5)
    np.testing.assert_allclose((mu - found) ** 2, loss, rtol=1e-5)


@pytest.mark.parametrize(
  'values, target, loss',
  [
    ((1.2, 0.9, 1.0), 0.3, 0.02),
    ((0.8, 0.95, 1.0), -0.5, 0.0),
    ((0.8, 1.1, 1.0), -0.5, 0.18),
  ],
)
def test_advantaged_target_by_hand(values, target, loss):
  """E1: the better action, and rows without advantage are not cloned."""
  q_made, q_data, value = (jnp.array([x]) for x in values)
  made, action = jnp.array([[0.3]]), jnp.array([[-0.5]])
  found, gate = offline.advantaged_target(made, action, q_made, q_data, value)
  np.testing.assert_allclose(found[0, 0], target, rtol=1e-6)
  held = 0.5 * gate[0] * (0.1 - found[0, 0]) ** 2
  np.testing.assert_allclose(held, loss, rtol=1e-5)


def test_kl_of_the_generator_by_hand():
  """E1."""
  found = offline.kl(jnp.array([0.3, 0.0]), jnp.array([0.5, 1.0]))
  np.testing.assert_allclose(found, 0.181574, rtol=1e-5)


def test_family_by_hand():
  """E1: encodings, the range of b, and weights of A = .3."""
  np.testing.assert_allclose(
    offline.encoding(jnp.float32(8.0), 6),
    [0.989358, -0.145500, 0.362852, 0.931847, 0.017235, 0.999851],
    rtol=1e-4,
  )
  balance = Family()
  assert balance.scaled(0.5) == 12.5
  for u, weight in ((0.5, 42.521082), (0.0, 27.112639)):
    found = np.exp(balance.scaled(u) * 0.3)
    np.testing.assert_allclose(found, weight, rtol=1e-5)


def test_expectile_by_hand():
  """E1: tau .9."""
  found = offline.expectile_loss(jnp.array([-1.0, 2.0]), 0.9)
  np.testing.assert_allclose(found, [0.1, 3.6], rtol=1e-5)


@pytest.mark.parametrize('name', EVERY)
def test_learners_find_the_better_action(name):
  """From uniform actions each moves towards the best, better than cloning."""
  data = toward_one()
  learner = EVERY[name].replace(width=32, batch=64, rate=3e-3)
  state, metrics = jax.jit(lambda key: learner.fit(data, key, 400))(
    jax.random.key(1)
  )
  obs = jnp.array([[-0.4], [0.4]])
  action = learner.mean(state.params, obs)[:, 0]
  assert action[1] - action[0] > 0.3  # cloning has about 0
  assert all(np.isfinite(x).all() for x in metrics.values())
  if name == 'PRDC':
    assert metrics['certain'].mean() > 0.5


def fitted(learner, steps=6):
  """Parameters after some steps."""
  fit = jax.jit(lambda key: learner.fit(toward_one(), key, steps)[0].params)
  return fit(jax.random.key(2))['actor']


def close(a, b):
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5), a, b
  )


def test_prdc_with_a_large_beta_is_td3_bc():
  """E1: distinct states, so that the nearest row is the row itself."""
  small = Offline(width=16, batch=32)
  close(fitted(small.replace(constraint=Nearest(beta=1e4))), fitted(small))


@pytest.mark.parametrize('name', EVERY)
def test_normalised_states_by_hand(name):
  """E1: it learns as on data whose states are normalised by hand."""
  data = toward_one()
  data = data.replace(obs=100 * data.obs + 7, next_obs=100 * data.next_obs + 7)
  mean, sd = data.obs.mean(axis=0)[None], data.obs.std(axis=0)[None] + 1e-3
  by_hand = data.replace(
    obs=(data.obs - mean) / sd, next_obs=(data.next_obs - mean) / sd
  )
  plain = EVERY[name].replace(width=16, batch=32)
  learner = plain.replace(normalised=True)
  found = jax.jit(lambda key: learner.fit(data, key, 6))(jax.random.key(2))[0]
  made = jax.jit(lambda key: plain.fit(by_hand, key, 6))(jax.random.key(2))[0]
  np.testing.assert_array_equal(found.params['states']['mean'], mean[0])
  np.testing.assert_array_equal(found.params['states']['sd'], sd[0])
  close({**found.params, 'states': None}, {**made.params, 'states': None})
  np.testing.assert_allclose(
    learner.mean(found.params, data.obs),
    plain.mean(made.params, by_hand.obs),
    rtol=1e-3,
    atol=1e-4,
  )
  other = plain.mean(made.params, data.obs)  # as they are
  assert jnp.abs(learner.mean(found.params, data.obs) - other).max() > 0.01


def test_normalised_states_need_offline_data():
  """The steps that follow online are normalised as the offline data were."""
  world = worlds.PointMaze(goals=((2, 4),), start=None)
  keys = jax.random.split(jax.random.key(0), 4)
  steps = histories(world, actors.Uniform(space=world.actions), keys, 1, 8)
  data = offline.data_set(steps)
  learner = Offline(width=8, batch=8, normalised=True)
  sizes = {'episodes': 2, 'horizon': 4}
  with pytest.raises(ValueError, match='Offline.normalised = True needs'):
    online.train(lambda _: world, learner, jax.random.key(1), **sizes)
  begun = learner.fit(data, jax.random.key(2), 2)[0]
  state, _ = online.train(
    lambda _: world,
    learner,
    jax.random.key(1),
    offline_start=(begun, data),
    **sizes,
  )
  jax.tree.map(
    np.testing.assert_array_equal,
    state.params['states'],
    begun.params['states'],
  )


def test_a2pr_without_a_mask_is_td3():
  """E1: mask 0 leaves only Q; TD3+BC with a large alpha is close to it."""
  small = Offline(width=16, batch=32)
  free = fitted(small.replace(constraint=Advantaged(mask=0.0)))
  close(free, fitted(small.replace(constraint=Advantaged(mask=0.0, latent=2))))
  bound = fitted(small)
  gap = max(
    float(jnp.abs(x - y).max())
    for x, y in zip(jax.tree.leaves(free), jax.tree.leaves(bound), strict=True)
  )
  assert gap > 1e-4


@pytest.mark.parametrize('name', ['TD3+BC', 'A2PR', 'IQL'])
def test_a_deterministic_actor_rests_in_every_second_step(name):
  """E0: with its optimizer and its lagged copies; critics move in each step."""
  learner, data = EVERY[name], toward_one()
  update = jax.jit(lambda state, key: learner.update(state, data, tables, key))
  tables = learner.tables(data)
  first, _ = update(learner.init(data, jax.random.key(0)), jax.random.key(1))
  second, _ = update(first, jax.random.key(2))

  def of_actor(state):
    return state.params['actor'], state.opt['actor'], state.lagged

  equal = jax.tree.map(jnp.array_equal, of_actor(first), of_actor(second))
  rests = all(jax.tree.leaves(equal))
  assert rests == (name != 'IQL')
  assert not jnp.array_equal(
    jax.tree.leaves(first.params['q'])[0],
    jax.tree.leaves(second.params['q'])[0],
  )


def test_the_nearest_action_has_no_gradient():
  """E0: of the loss (mu - a')^2 with respect to mu it is 2 (mu - a')."""
  data = toward_one(8)

  def loss(mu):
    target, _ = offline.nearest_action(
      data.obs[0], jax.lax.stop_gradient(mu), jnp.arange(8), data, 2.0
    )
    return ((mu - jax.lax.stop_gradient(target)) ** 2).sum(), target

  (_, target), grad = jax.value_and_grad(loss, has_aux=True)(jnp.array([0.1]))
  np.testing.assert_array_equal(grad, 2 * (0.1 - target))


def test_a_family_of_one_is_a_constant():
  """E0: with low = high the balance model cannot choose."""
  learner = EVERY['FamO2O'].replace(balance=Family(low=10.0, high=10.0))
  params = learner.init(toward_one(), jax.random.key(0)).params
  b = learner.chosen_b(params, toward_one().obs)
  np.testing.assert_array_equal(b, 10.0)


def test_online_the_balance_model_draws_the_coefficients():
  """E0: with low = high both draws are the same; else the actor differs."""

  def actor_of(**fields):
    balance = Family(**fields)
    return fitted(EVERY['FamO2O'].replace(balance=balance, width=16))

  same = {'low': 10.0, 'high': 10.0}
  jax.tree.map(
    np.testing.assert_array_equal,
    actor_of(**same),
    actor_of(**same, drawn='balance'),
  )
  pairs = zip(
    jax.tree.leaves(actor_of()),
    jax.tree.leaves(actor_of(drawn='balance')),
    strict=True,
  )
  assert max(float(jnp.abs(a - b).max()) for a, b in pairs) > 1e-5


def test_online_steps_are_added_to_those_of_the_data():
  """E0: the state continues for one update a step."""
  world = worlds.PointMaze(goals=((2, 4),), start=None)
  keys = jax.random.split(jax.random.key(0), 6)
  data = offline.data_set(
    histories(world, actors.Uniform(space=world.actions), keys, 1, 10)
  )
  learner = EVERY['FamO2O'].replace(width=8, batch=4)

  @jax.jit
  def run(key):
    start, _ = learner.fit(data, key, 5)
    after, _ = online.train(
      lambda passed: world,
      learner,
      key,
      episodes=2,
      horizon=7,
      offline_start=(start, data),
    )
    return start, after

  start, after = run(jax.random.key(1))
  assert start.step == 5 and after.step == 5 + 2 * 7
  assert not jnp.array_equal(start.params['log_sd'], after.params['log_sd'])


def test_data_of_histories():
  """E0: invalid steps are left out, and the set plays in a learner."""
  world = worlds.PointMaze()
  keys = jax.random.split(jax.random.key(0), 3)
  steps = histories(world, actors.Uniform(space=world.actions), keys, 1, 5)
  steps = steps.replace(valid=steps.valid.at[1, 3:].set(0.0))
  data = offline.data_set(steps)
  assert data.size == 13
  np.testing.assert_array_equal(data.obs[:5], steps.obs[0])
  learner = Offline(width=8, batch=4)
  params = learner.init(data, jax.random.key(0)).params
  played = histories(world, Learned(learner=learner, params=params), keys, 1, 5)
  assert jnp.abs(played.action).max() <= 1


def test_sets_without_successors_are_refused():
  """The field is named before anything compiles."""
  world = worlds.PointMaze()
  keys = jax.random.split(jax.random.key(0), 2)
  steps = histories(world, actors.Uniform(space=world.actions), keys, 1, 3)
  with pytest.raises(ValueError, match='Steps.next_obs is None'):
    offline.data_set(steps.replace(next_obs=None))
  with pytest.raises(ValueError, match='Steps.valid'):
    offline.data_set(steps.replace(valid=0 * steps.valid))
  data = toward_one(6)
  for field, x, words in (
    ('next_obs', data.next_obs[:3], 'DataSet.next_obs has shape'),
    ('next_obs', jnp.zeros((6, 2)), 'every state needs its successor'),
    ('action', data.action[:5], 'DataSet.action has shape'),
    ('reward', data.reward.at[0].set(jnp.nan), 'DataSet.reward has a number'),
  ):
    with pytest.raises(ValueError, match=words):
      offline.check_data(data.replace(**{field: x}))


@pytest.mark.parametrize(
  'fields, words',
  [
    ({'constraint': Weighted()}, 'Offline.constraint = Weighted'),
    ({'critic': Expectile()}, 'Expectile goes with Weighted'),
    ({'balance': Family()}, 'Offline.balance needs'),
    ({'alpha': -1.0}, 'Offline.alpha'),
  ],
)
def test_pieces_that_do_not_fit_are_refused(fields, words):
  with pytest.raises(ValueError, match=words):
    Offline(**fields)
  assert isinstance(Offline().constraint, ToData)


@pytest.mark.parametrize(
  'change, words',
  [
    ({'next_obs': None}, 'next_obs has shape None, but there are 8 rewards'),
    ({'next_obs': jnp.zeros((7, 1))}, r'next_obs has shape \(7, 1\)'),
    ({'next_obs': jnp.zeros((8, 2))}, r'next_obs has shape \(8, 2\)'),
    ({'action': jnp.zeros((9, 1))}, r'action has shape \(9, 1\)'),
    ({'obs': jnp.zeros(8, int)}, r'obs is int32\[8\], expected rows of real'),
    ({'action': jnp.zeros(8)}, r'action is float32\[8\], expected rows'),
    ({'reward': jnp.zeros((8, 1))}, r'reward has shape \(8, 1\)'),
    ({'done': jnp.zeros(())}, r'done has shape \(\)'),
  ],
)
def test_sets_made_by_hand_are_refused_when_they_are_traced(change, words):
  """A gather would take other rows of a wrong length without a word."""
  data = toward_one(8).replace(**change)
  with pytest.raises(ValueError, match=f'DataSet.{words}'):
    jax.jit(lambda key: Offline().fit(data, key, 2))(jax.random.key(0))


def test_sets_of_discrete_worlds_say_what_to_do():
  world = worlds.DarkRoom(size=3)
  keys = jax.random.split(jax.random.key(0), 2)
  steps = histories(world, actors.Uniform(space=world.actions), keys, 1, 4)
  with pytest.raises(ValueError, match='obs is int32.*space.features'):
    offline.data_set(steps)
