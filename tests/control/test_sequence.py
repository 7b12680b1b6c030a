"""The sequence policy acts as it is trained, and learns in context."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import types
from rl_jax.control import actors, rows, sequence, training, worlds
from rl_jax.control.unroll import histories, unroll
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.statistics import ActionProbs

SUPERVISED = Method(
  losses=(losses.NegativeLogLikelihood(),), aggregation=TokenMean()
)


def policy(world, **fields):
  model = sequence.model_for(world, layers=2, width=16, **fields)
  return model, sequence.init_params(world, model, jax.random.key(1))


def keys(number):
  return jax.random.split(jax.random.key(0), number)


def statistics(model, params, traj, *needs):
  return token_statistics(Forward(model=model), params, traj, {*needs})


def test_rows_by_hand():
  """E0: a dark room of two episodes of two steps."""
  world = worlds.DarkRoom(size=2, goals=(0,))
  steps = histories(world, actors.Uniform(space=world.actions), keys(3), 2, 2)
  traj = rows.trajectories(world, steps)
  zeros = np.zeros((3, 1))
  np.testing.assert_array_equal(
    traj.response_BT, np.concatenate([zeros, steps.action], axis=1)
  )
  np.testing.assert_array_equal(
    traj.kind_BT, [[types.ENVIRONMENT, *[types.POLICY] * 4]] * 3
  )
  np.testing.assert_array_equal(traj.mask_BT, [[0, 1, 1, 1, 1]] * 3)
  np.testing.assert_array_equal(traj.turn_BT, [[0, 0, 1, 2, 3]] * 3)
  np.testing.assert_array_equal(traj.reward_B, steps.reward.sum(axis=1))
  obs_BT = traj.inputs_BTF[:, :4, :4].argmax(axis=-1)
  np.testing.assert_array_equal(obs_BT, steps.obs)
  taken_BTA, extra_BT3 = jnp.split(traj.inputs_BTF[..., 4:], [5], axis=-1)
  np.testing.assert_array_equal(taken_BTA[:, 1:].argmax(-1), steps.action)
  assert not taken_BTA[:, 0].any()
  reward_BT, last_BT, start_BT = jnp.moveaxis(extra_BT3, -1, 0)
  np.testing.assert_array_equal(reward_BT[:, 1:], steps.reward)
  np.testing.assert_array_equal(last_BT, [[0, 0, 1, 0, 1]] * 3)
  np.testing.assert_array_equal(start_BT, [[1, 0, 0, 0, 0]] * 3)


def test_actor_is_the_policy_that_is_trained():
  """E1: the cache gives the log-probabilities of the forward pass."""
  world = worlds.DarkRoom(size=3)
  model, params = policy(world)
  params['inputs'] *= 4.0  # so that histories matter
  actor = sequence.SequenceActor(
    world=world, params=params, model=model, steps=8
  )
  steps = histories(world, actor, keys(4), 2, 4)
  traj = rows.trajectories(world, steps)
  probs = ActionProbs(actions=tuple(range(5)))
  stats = statistics(model, params, traj, probs)
  prob_TA = []
  memory = actor.init(jax.random.key(0))
  for t in range(8):
    logits_A, memory = actor.logits(memory, steps.obs[0, t])
    prob_TA.append(jax.nn.softmax(logits_A))
    memory = memory._replace(
      token=steps.action[0, t],
      reward=steps.reward[0, t],
      last=steps.last[0, t],
    )
  found = stats['action_probs'][0, 1:]
  np.testing.assert_allclose(found, jnp.stack(prob_TA), rtol=1e-4)
  np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-5)
  assert float(jnp.ptp(found, axis=0).max()) > 0.01


def test_targets_are_scored_in_place_of_the_response():
  """E0 where they are equal; else the probability of the target."""
  world = worlds.Bandit(arms=3)
  model, params = policy(world)
  steps = histories(world, actors.Uniform(space=world.actions), keys(4), 1, 6)
  plain = rows.trajectories(world, steps)
  same = plain.replace(target_BT=plain.response_BT)
  first = statistics(model, params, plain, 'entropy')
  second = statistics(model, params, same, 'entropy')
  jax.tree.map(np.testing.assert_array_equal, first, second)
  best = rows.trajectories(world, steps, optimal=True)
  np.testing.assert_array_equal(best.response_BT, plain.response_BT)
  np.testing.assert_array_equal(best.target_BT[:, 1:], steps.optimal)
  probs = ActionProbs(actions=(0, 1, 2))
  stats = statistics(model, params, best, probs)
  want = jnp.take_along_axis(
    jnp.log(stats['action_probs'][:, 1:]), steps.optimal[..., None], axis=-1
  )
  np.testing.assert_allclose(stats['logp'][:, 1:], want[..., 0], rtol=1e-5)


def test_unknown_optimal_actions_are_not_trained():
  """E0."""
  world = worlds.Experts(steps=3)
  steps = histories(world, actors.Hedge(), keys(2), 1, 3)
  traj = rows.trajectories(world, steps, optimal=True)
  assert not traj.mask_BT.any() and not traj.target_BT.any()


def test_inputs_are_added_to_embeddings():
  """E0: inputs of 0 change nothing; the last one is fed to nothing."""
  world = worlds.Bandit(arms=3)
  model, params = policy(world)
  steps = histories(world, actors.Uniform(space=world.actions), keys(4), 1, 6)
  traj = rows.trajectories(world, steps)
  zero = traj.replace(inputs_BTF=jnp.zeros_like(traj.inputs_BTF))
  none = traj.replace(inputs_BTF=None)
  stats = [statistics(model, params, x) for x in (zero, none, traj)]
  np.testing.assert_array_equal(stats[0]['logp'], stats[1]['logp'])
  assert np.abs(stats[2]['logp'] - stats[1]['logp']).max() > 1e-4
  cut = traj.replace(inputs_BTF=traj.inputs_BTF.at[:, -1].set(7.0))
  np.testing.assert_array_equal(
    statistics(model, params, cut)['logp'], stats[2]['logp']
  )
  later = traj.replace(inputs_BTF=traj.inputs_BTF.at[:, 3].add(1.0))
  changed = statistics(model, params, later)['logp'] != stats[2]['logp']
  assert not changed[:, :4].any() and changed[:, 4].any()


def test_inputs_without_their_map_are_named():
  world = worlds.Bandit(arms=3)
  model, params = policy(world)
  steps = histories(world, actors.Uniform(space=world.actions), keys(2), 1, 3)
  traj = rows.trajectories(world, steps)
  del params['inputs']
  with pytest.raises(ValueError, match=r"inputs_BTF needs params\['inputs'\]"):
    statistics(model, params, traj)


@pytest.mark.parametrize('actions', [(), (1, 1), tuple(range(33))])
def test_action_probs_are_of_few_tokens(actions):
  with pytest.raises(ValueError, match='ActionProbs.actions'):
    ActionProbs(actions=actions)


def test_microbatches_change_nothing():
  """E1: targets and inputs travel with their rows."""
  world = worlds.Bandit(arms=3)
  model, params = policy(world)
  steps = histories(world, actors.Uniform(space=world.actions), keys(8), 1, 5)
  traj = rows.trajectories(world, steps, optimal=True)

  def loss(microbatches):
    forward = Forward(model=model, microbatches=microbatches)

    def rows_of(params, key):
      del params, key
      return traj

    config = OptimizerConfig(learning_rate=1e-2, total_steps=2)
    fit = training.fit(
      forward, SUPERVISED, rows_of, params, jax.random.key(0), config
    )
    return fit[1]['loss']

  np.testing.assert_allclose(loss(1), loss(4), rtol=1e-5)


def test_imitation_of_the_best_arm_learns_in_context():
  """With two arms and no noise one pull tells much; the prior tells nothing."""
  world = worlds.Bandit(arms=2, sigma=0.0)
  model = sequence.model_for(world, layers=1, width=16)
  uniform = actors.Uniform(space=world.actions)

  def data(params, key):
    del params
    key_B = jax.random.split(key, 32)
    steps = jax.vmap(lambda key: unroll(world, uniform, key, 1, 6))(key_B)
    return rows.trajectories(world, steps, optimal=True)

  config = OptimizerConfig(learning_rate=1e-2, total_steps=250)

  @jax.jit
  def run(key):
    params = sequence.init_params(world, model, key)
    forward = Forward(model=model)
    return training.fit(forward, SUPERVISED, data, params, key, config)

  params, metrics = run(jax.random.key(0))
  assert metrics['loss'][-20:].mean() < 0.5 < metrics['loss'][:5].mean()
  assert not metrics['skipped'].any()
  actor = sequence.SequenceActor(
    world=world, params=params, model=model, steps=6
  )
  regret = histories(world, actor, keys(200), 1, 6).regret.mean(axis=0)
  assert regret[-1] < 0.6 * regret[0]


def test_fit_needs_its_number_of_steps():
  world = worlds.Bandit(arms=2)
  model, params = policy(world)
  with pytest.raises(ValueError, match='total_steps = None'):
    training.fit(
      Forward(model=model),
      SUPERVISED,
      lambda params, key: None,
      params,
      jax.random.key(0),
      OptimizerConfig(),
    )


def test_longer_histories_than_the_cache_are_refused():
  """They would overwrite its last place without a word."""
  world = worlds.Bandit(arms=2)
  model, params = policy(world)
  actor = sequence.SequenceActor(
    world=world, params=params, model=model, steps=6
  )
  with pytest.raises(ValueError, match='steps = 6, but the history has 8'):
    histories(world, actor, keys(2), 2, 4)
