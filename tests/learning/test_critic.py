"""The value head reads states of the policy, or of separate layers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import critic_steps, optimizers, statistics
from rl_jax.learning.final_values import final_values, token_values
from rl_jax.learning.statistics import Forward
from rl_jax.models import critic, transformer
from rl_jax.models import params as params_lib
from rl_jax.models.source import ModelSource
from rl_jax.runtime import mesh as mesh_lib

NEEDS = ('values', 'values_after')
KINDS = (critic.SHARED, critic.DETACHED, critic.OWN)
GRADS = {
  'model': {'w': jnp.array([3.0, 4.0])},
  'critic': {'w': jnp.array([0.0, 12.0])},
  'value_head': {'w': jnp.array([5.0])},
}


def model_of(tiny, kind):
  """The tiny model with another critic."""
  return dataclasses.replace(tiny.CFG, critic=kind)


@pytest.fixture(scope='module')
def found(tiny):
  """By critic: its statistics, and gradients of values and of log-probs."""
  traj, params = tiny.rollout(), tiny.params()
  params = params | {'critic': critic.copied(params)}
  weight_BT = jnp.cos(jnp.arange(traj.mask_BT.size)).reshape(traj.mask_BT.shape)

  def run(kind):
    needed = transformer.specs(model_of(tiny, kind))
    mine = {name: params[name] for name in needed}
    forward = Forward(model=model_of(tiny, kind), temperature=tiny.TEMPERATURE)

    @jax.jit
    def all_of(params):
      def total(params, name):
        stats = statistics.token_statistics(forward, params, traj, NEEDS)
        return (stats[name] * weight_BT).sum(), stats

      grads = [
        jax.grad(total, has_aux=True)(params, name) for name in (*NEEDS, 'logp')
      ]
      stats = grads[0][1] | {
        'token_values': token_values(forward, params, traj),
        'final_values': final_values(forward, params, traj),
      }
      return stats, {
        name: g for name, (g, _) in zip((*NEEDS, 'logp'), grads, strict=True)
      }

    return jax.device_get(all_of(mine))

  return {kind: run(kind) for kind in KINDS}


@pytest.mark.parametrize('kind', [critic.DETACHED, critic.OWN])
def test_equal_weights_give_equal_statistics(found, kind):
  """E1: another critic changes gradients only, as long as its layers agree."""
  shared, _ = found[critic.SHARED]
  other, _ = found[kind]
  assert np.abs(shared['values']).max() > 0.01
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    shared,
    other,
  )


@pytest.mark.parametrize('name', NEEDS)
def test_who_is_trained_by_the_values(found, name):
  """E1: the same gradient, of the policy's layers, of none, of separate
  ones.
  """
  (_, shared), (_, detached), (_, own) = (found[k] for k in KINDS)

  def same(a, b):
    return jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), a, b
    )

  def largest(tree):
    return max(np.abs(x).max() for x in jax.tree.leaves(tree))

  for grads in (shared, detached, own):
    same(grads[name]['value_head'], shared[name]['value_head'])
  assert largest(shared[name]['model']) > 0.01
  assert largest(detached[name]['model']) == 0
  assert largest(own[name]['model']) == 0
  same(own[name]['critic'], critic.specs(shared[name]['model']))


def test_the_policy_learns_as_without_a_critic(found):
  """E1: log-probs move the policy's layers, not the critic's."""
  (_, shared), (_, _), (_, own) = (found[kind] for kind in KINDS)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    shared['logp']['model'],
    own['logp']['model'],
  )
  assert all(not x.any() for x in jax.tree.leaves(own['logp']['critic']))


def test_a_residual_critic_is_two(tiny):
  """E1: the first output of separate layers, the second of the policy's."""
  traj, params = tiny.rollout(), tiny.params()
  layers = jax.tree.map(lambda x: 0.5 * x, critic.copied(params))
  head = {
    'w': jnp.stack([params['value_head']['w'], jnp.cos(jnp.arange(16.0))])
  }
  head['b'] = jnp.array([0.25, -0.5])
  params = {'model': params['model'], 'critic': layers, 'value_head': head}
  needs = ('values', 'value_heads', 'value_heads_after')

  def run(kind, params):
    model = dataclasses.replace(tiny.CFG, critic=kind, num_values=2)
    forward = Forward(model=model, temperature=tiny.TEMPERATURE)
    return statistics.token_statistics(forward, params, traj, needs)

  shared, own, both = (
    run(kind, params) for kind in (critic.SHARED, critic.OWN, critic.RESIDUAL)
  )

  def close(a, b):
    return np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

  assert np.abs(own['values'] - shared['values']).max() > 0.01
  close(both['values'], own['values'])
  for name in needs[1:]:
    close(both[name][..., 0], own[name][..., 0])
    close(both[name][..., 1], shared[name][..., 1])

  def moved(output):
    """The largest gradient of an output by tree."""

    def total(p):
      return run(critic.RESIDUAL, p)['value_heads'][..., output].sum()

    grads = jax.grad(total)(params)
    return {
      name: max(np.abs(x).max() for x in jax.tree.leaves(grads[name]))
      for name in ('model', 'critic')
    }

  first, second = moved(0), moved(1)
  assert first['model'] == 0 and first['critic'] > 0.01
  assert second['critic'] == 0 and second['model'] > 0.01
  with pytest.raises(ValueError, match='num_values = 1 must be at least 2'):
    ModelSource(value_head=True, critic=critic.RESIDUAL)


def test_policy_and_critic_are_clipped_apart():
  """|(3, 4)| = 5 and |(0, 12), 5| = 13: each becomes 1, not both together."""
  clip = critic_steps.clip_by_norm(1.0)
  clipped, _ = clip.update(GRADS, clip.init(GRADS))
  np.testing.assert_allclose(clipped['model']['w'], [0.6, 0.8], rtol=1e-6)
  np.testing.assert_allclose(clipped['critic']['w'], [0, 12 / 13], rtol=1e-6)
  np.testing.assert_allclose(clipped['value_head']['w'], [5 / 13], rtol=1e-6)
  large = critic_steps.clip_by_norm(20.0)
  jax.tree.map(np.testing.assert_array_equal, large.update(GRADS, ())[0], GRADS)


def test_a_head_on_shared_layers_is_clipped_with_them():
  """Without a critic of its own it is clipping by the global norm of all."""
  grads = {name: GRADS[name] for name in ('model', 'value_head')}
  mine, optaxs = (
    f(1.0).update(grads, ())[0]
    for f in (critic_steps.clip_by_norm, optax.clip_by_global_norm)
  )
  jax.tree.map(np.testing.assert_array_equal, mine, optaxs)


def test_the_multiplier_is_of_the_critic():
  """Steps -0.1 g of SGD; of the critic three times that."""
  config = optimizers.OptimizerConfig(
    name='sgd', learning_rate=0.1, clip_norm=None, critic_multiplier=3.0
  )
  made = optimizers.make_optimizer(config)
  steps, _ = made.update(GRADS, made.init(GRADS), GRADS)
  np.testing.assert_allclose(steps['model']['w'], [-0.3, -0.4], rtol=1e-6)
  np.testing.assert_allclose(steps['critic']['w'], [0, -3.6], rtol=1e-6)
  np.testing.assert_allclose(steps['value_head']['w'], [-1.5], rtol=1e-6)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'critic': 'own'}, "critic = 'own' without value_head=True"),
    ({'critic': 'detached'}, "critic = 'detached' without value_head=True"),
    ({'critic': 'none', 'value_head': True}, "critic = 'none'"),
    (
      {'critic': 'own', 'value_head': True, 'lora_rank': 2},
      "lora_rank = 2 only adapters: set critic='detached'",
    ),
  ],
)
def test_bad_critics(fields, message):
  """Named before anything is loaded."""
  with pytest.raises(ValueError, match=message):
    ModelSource(**fields)


@pytest.mark.devices
@pytest.mark.usefixtures('no_mesh_left')
def test_own_layers_are_split_over_a_mesh(tiny):
  """E1: statistics and gradients on 2 x 2 x 2 devices are those on one."""
  traj = tiny.rollout()
  forward = Forward(model=model_of(tiny, critic.OWN))

  def on_mesh(shape):
    axes = dict(zip(('data', 'fsdp', 'tensor'), shape, strict=True))
    count = np.prod(shape)
    mesh = mesh_lib.make_mesh(
      mesh_lib.MeshConfig(**axes), jax.devices()[:count]
    )
    with jax.set_mesh(mesh):
      key = jax.random.key(0)
      params = params_lib.init_params(forward.model, key, mesh)

      @jax.jit
      def gradient(params):
        def total(params):
          stats = statistics.token_statistics(forward, params, traj, NEEDS)
          return sum((x**2).sum() for x in stats.values())

        params = jax.tree.map(lambda x: x + 0.05 * jnp.sin(9 * x + 1), params)
        return jax.grad(total)(params)

      return jax.device_get(gradient(params))

  one, split = on_mesh((1, 1, 1)), on_mesh((2, 2, 2))
  assert all(np.abs(x).max() > 0 for x in jax.tree.leaves(one['critic']))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
    one,
    split,
  )
