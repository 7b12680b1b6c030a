"""Schedules and the optax chain."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer, schedule


def rates(steps, **fields):
  """Learning rates of the first steps with peak 1."""
  rate = schedule(OptimizerConfig(learning_rate=1.0, **fields))
  return [float(rate(step)) for step in range(steps)]


def test_a_constant_rate_is_constant():
  """Also far out."""
  assert rates(3) == [1.0, 1.0, 1.0]


def test_warm_up_learns_from_step_zero():
  """Peak 1 after 3 steps: 1/4, 2/4, 3/4, 1."""
  np.testing.assert_allclose(
    rates(5, warmup_steps=3), [0.25, 0.5, 0.75, 1.0, 1.0], rtol=1e-6
  )


def test_decays_reach_zero_at_total_steps():
  """From 1 after 2 steps of warm-up to 0 at step 6; cosine 1/2 in between."""
  linear = rates(8, schedule='linear', warmup_steps=2, total_steps=6)
  np.testing.assert_allclose(
    linear, [1 / 3, 2 / 3, 1, 0.75, 0.5, 0.25, 0, 0], atol=1e-6
  )
  cosine = rates(8, schedule='cosine', warmup_steps=2, total_steps=6)
  np.testing.assert_allclose(
    cosine[2:],
    [1, (1 + np.sqrt(0.5)) / 2, 0.5, (1 - np.sqrt(0.5)) / 2, 0, 0],
    atol=1e-6,
  )


def step(gradient, **fields):
  """The first update of one weight of value 2."""
  optimizer = make_optimizer(OptimizerConfig(learning_rate=0.1, **fields))
  params = {'w': jnp.full((2,), 2.0)}
  state = optimizer.init(params)
  updates, state = optimizer.update({'w': jnp.asarray(gradient)}, state, params)
  return updates['w'], state


def test_gradients_are_clipped_by_global_norm_before_adam():
  """(3, 4) of norm 5 becomes (0.6, 0.8): eps then matters, as derived.

  First Adam step: -lr g / (|g| + eps), here with eps = 1.
  """
  clipped, _ = step([3.0, 4.0], eps=1.0, clip_norm=1.0)
  np.testing.assert_allclose(
    clipped, [-0.1 * 0.6 / 1.6, -0.1 * 0.8 / 1.8], rtol=1e-5
  )
  whole, _ = step([3.0, 4.0], eps=1.0, clip_norm=None)
  np.testing.assert_allclose(whole, [-0.1 * 3 / 4, -0.1 * 4 / 5], rtol=1e-5)


def test_weight_decay_is_decoupled():
  """Adam's step, and lr * decay * w = 0.1 * 0.5 * 2 besides."""
  plain, _ = step([1.0, 1.0])
  decayed, _ = step([1.0, 1.0], weight_decay=0.5)
  np.testing.assert_allclose(decayed - plain, [-0.1, -0.1], rtol=1e-5)


def test_only_the_first_moment_is_narrowed():
  """bfloat16 for mu, float32 for nu, which spans more binades."""
  _, state = step([1.0, 1.0], moment_dtype='bfloat16', clip_norm=None)
  adam = state[0]
  assert adam.mu['w'].dtype == jnp.bfloat16
  assert adam.nu['w'].dtype == jnp.float32


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'learning_rate': -1.0}, 'learning_rate = -1.0'),
    ({'b1': 1.0}, r'b1 = 1.0 is outside \[0.0, 1.0\)'),
    ({'eps': 0.0}, 'eps = 0.0'),
    ({'clip_norm': 0.0}, 'clip_norm = 0.0'),
    ({'schedule': 'step'}, "'step' is none of constant, linear, cosine"),
    ({'moment_dtype': 'float16'}, "'float16' is none of"),
  ],
)
def test_bad_values_are_named(fields, message):
  """Before anything is compiled."""
  with pytest.raises(ValueError, match=message):
    OptimizerConfig(**fields)


def test_a_schedule_without_an_end_is_named():
  """A run takes the end from its iterations; see config.optimizer_of."""
  with pytest.raises(ValueError, match="schedule = 'linear' needs total_steps"):
    make_optimizer(OptimizerConfig(schedule='linear'))
