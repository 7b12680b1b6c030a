"""bfloat16 parameters with the lower bits of float32 master weights."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import master_weights, update
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.learning.state import fresh_state
from rl_jax.learning.statistics import Forward


def weights(size=512):
  """Float32 numbers of both signs over many binades, ties and zero."""
  rng = np.random.default_rng(0)
  drawn = rng.normal(size=size) * 10.0 ** rng.integers(-6, 3, size)
  bits = np.array([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001], np.uint32)
  ties = bits.view(np.float32)
  return np.concatenate([drawn.astype(np.float32), ties, -ties, [0.0]]).astype(
    np.float32
  )


def test_parameter_and_remainder_are_the_master_weight():
  """E0: both ways; the parameter is the nearest, halves away from zero."""
  master = weights()
  param, low = master_weights.split(jnp.asarray(master))
  np.testing.assert_array_equal(master_weights.joined(param, low), master)
  assert (param.dtype, low.dtype) == (jnp.bfloat16, jnp.uint16)
  # 1 + 2^-8 is in the middle of 1 and 1 + 2^-7.
  half, _ = master_weights.split(jnp.float32([1 + 2**-8, -1 - 2**-8, 1.001]))
  np.testing.assert_array_equal(
    half.astype(jnp.float32), np.float32([1 + 2**-7, -1 - 2**-7, 1.0])
  )


def run(params, steps, optimizer, scale=1.0):
  """(parameters, state) after steps with gradients that do not depend on it."""
  state = optimizer.init(params)
  rng = np.random.default_rng(1)

  @jax.jit
  def step(params, state, grads):
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state

  for _ in range(steps):
    grads = jax.tree.map(
      lambda p: jnp.float32(scale * rng.normal(size=p.shape)), params
    )
    params, state = step(params, state, grads)
  return params, state


@pytest.mark.parametrize(
  'fields', [{}, {'moment_dtype': 'bfloat16', 'weight_decay': 0.1}]
)
def test_small_steps_are_those_of_float32_weights(fields):
  """E1: after 50 steps at 1e-6, with a leaf that is float32 beside it."""
  optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-6, **fields))
  half = jnp.asarray(weights(), jnp.bfloat16)
  params = {'b': jnp.float32([0.5]), 'w': half}
  whole = {'b': params['b'], 'w': half.astype(jnp.float32)}
  expected, inner = run(whole, 50, optimizer)
  found, state = run(params, 50, optimizer)
  assert found['w'].dtype == jnp.bfloat16
  masters = master_weights.joined(found['w'], state.remainder['w'])

  def same(x, y):
    return np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-9)

  same(masters, expected['w'])
  same(found['b'], expected['b'])
  assert jax.tree.structure(state.inner) == jax.tree.structure(inner)
  # Steps of 1e-6 at 1 are below half of a bit, 2^-9: they have added up.
  assert np.mean(masters != half.astype(jnp.float32)) > 0.9
  lost, _ = run({'w': half}, 50, optax.sgd(1e-6))
  large = np.abs(half.astype(jnp.float32)) > 1e-2
  np.testing.assert_array_equal(lost['w'][large], half[large])


def test_float32_parameters_have_no_more_state():
  """Checkpoints of such runs stay what they were."""
  params = {'w': jnp.ones(3)}
  plain = optax.sgd(0.1, momentum=0.9)
  wrapped = master_weights.with_master_weights(plain)
  assert jax.tree.structure(wrapped.init(params)) == jax.tree.structure(
    plain.init(params)
  )
  np.testing.assert_array_equal(
    run(params, 3, wrapped)[0]['w'], run(params, 3, plain)[0]['w']
  )


def test_a_step_over_many_binades_keeps_weight_and_remainder_together():
  """From 1 to 1e-10 in one step the sum is rounded, and so is the master."""
  params = {'w': jnp.ones(1, jnp.bfloat16)}
  optimizer = master_weights.with_master_weights(optax.sgd(1.0))
  state = optimizer.init(params)
  grads = {'w': jnp.float32([1.0 - 2.0**-24])}
  updates, state = optimizer.update(grads, state, params)
  after = optax.apply_updates(params, updates)
  master = master_weights.joined(after['w'], state.remainder['w'])
  np.testing.assert_allclose(master, [2.0**-24], atol=2.0**-23)


def test_the_norm_of_a_bfloat16_gradient_is_float32(tiny, toy):
  """The metric is of the gradient that the step takes, in both programs."""
  method = toy.get_method('reinforce').as_arrays()
  params = optax.tree.cast(tiny.params(), jnp.bfloat16)
  forward = Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE)
  batch = update.Batch(
    frozen={}, method=method, traj=tiny.rollout(), key=jax.random.key(0)
  )
  optimizer = optax.sgd(1.0)
  state = fresh_state(method, optimizer, params, num_ids=1)

  @jax.jit
  def found(state):
    grads, *_ = update.minibatch_gradient(
      forward, state.params, batch, {}, reuse_scores=False
    )
    _, metrics = update.update_minibatch(
      forward,
      state,
      batch,
      jnp.arange(4),
      optimizer=optimizer,
      reuse_scores=False,
    )
    return grads, metrics['train/grad_norm']

  grads, norm = found(state)
  squares = [(np.float64(x) ** 2).sum() for x in jax.tree.leaves(grads)]
  np.testing.assert_allclose(norm, np.sqrt(sum(squares)), rtol=1e-4)
  assert norm.dtype == jnp.float32
