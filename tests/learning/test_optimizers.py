"""Schedules and the optax chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer, schedule
from rl_jax.learning.state import state_shapes


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
    ({'schedule': 'cosin'}, "optimizer.schedule: .* mean 'cosine'"),
    (
      {'schedule': 'linear', 'schedule_arguments': {'end': 0.1}},
      "argument of 'linear': 'end'.* mean 'end_fraction'",
    ),
    (
      {'schedule': 'wsd', 'schedule_arguments': {'decay_fraction': 2.0}},
      r'decay_fraction = 2.0 is outside \[0.0, 1.0\]',
    ),
    (
      {'schedule': 'polynomial_schedule', 'schedule_arguments': {'powr': 1}},
      "mean 'power'",
    ),
    ({'name': 'lyon'}, "optimizer.name: .* mean 'lion'"),
    ({'name': 'lion', 'arguments': {'bb1': 0.9}}, "'bb1'.* mean 'b1'"),
    ({'name': 'lion', 'b1': 0.5}, 'b1 = 0.5 is of AdamW, .*arguments'),
    ({'name': 'lion', 'arguments': {'learning_rate': 1.0}}, "'learning_rate'"),
    ({'arguments': {'b1': 0.5}}, 'these are fields'),
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


def test_wsd_is_stable_and_then_decays():
  """The last half of 8 steps, to a tenth; by default the last fifth to 0."""
  half = {'decay_fraction': 0.5, 'end_fraction': 0.1}
  found = rates(9, schedule='wsd', total_steps=8, schedule_arguments=half)
  np.testing.assert_allclose(
    found, [1, 1, 1, 1, 1, 0.775, 0.55, 0.325, 0.1], rtol=1e-6
  )
  found = rates(11, schedule='wsd', total_steps=10)
  np.testing.assert_allclose(found[7:], [1, 1, 0.5, 0], atol=1e-6)


def test_decays_end_at_a_fraction():
  """The end is a fraction of the peak."""
  for name in ('linear', 'cosine'):
    found = rates(
      5, schedule=name, total_steps=4, schedule_arguments={'end_fraction': 0.2}
    )
    np.testing.assert_allclose(found[::2], [1, 0.6, 0.2], rtol=1e-6)


def test_schedules_of_optax_by_name():
  """The rate is learning_rate; missing steps are those of the run."""
  found = rates(
    5,
    schedule='exponential_decay',
    total_steps=2,
    schedule_arguments={'decay_rate': 0.25},
  )
  np.testing.assert_allclose(found, [1, 0.5, 0.25, 0.125, 0.0625], rtol=1e-6)
  steps = {'boundaries_and_scales': {'2': 0.1}}  # JSON has text as keys
  found = rates(
    4, schedule='piecewise_constant_schedule', schedule_arguments=steps
  )
  np.testing.assert_allclose(found, [1, 1, 0.1, 0.1], rtol=1e-6)
  with pytest.raises(ValueError, match='decay_rate'):
    rates(1, schedule='exponential_decay', total_steps=2)


def test_lion_by_name():
  """lr sign(g) (Chen et al. 2023, Algorithm 2, first step); one moment."""
  arguments = {'weight_decay': 0.0}
  update, state = step([3.0, -4.0], name='lion', arguments=arguments)
  np.testing.assert_allclose(update, [-0.1, 0.1], rtol=1e-6)
  counts = [x.size for x in jax.tree.leaves(state)]
  assert sorted(counts) == [1, 1, 2]


def test_adamw_takes_further_arguments():
  """Nesterov's first step is larger: m = b1 m1 + (1 - b1) g, corrected."""
  plain, _ = step([1.0, 1.0], clip_norm=None)
  update, _ = step([1.0, 1.0], clip_norm=None, arguments={'nesterov': True})
  assert abs(update[0]) > abs(plain[0])


@pytest.mark.parametrize('name', ['sm3', 'rprop'])
def test_an_optimizer_without_schedules_has_a_constant_rate(name):
  """And refuses any other, by name."""
  step([1.0, 1.0], name=name)
  with pytest.raises(ValueError, match=f'name = {name!r} cannot be used'):
    step([1.0, 1.0], name=name, warmup_steps=2)


def test_what_knows_no_stacked_weights_is_refused():
  """It would project the embeddings and leave all layers to Adam."""
  with pytest.raises(ValueError, match='galore.* projects arrays of two axes'):
    OptimizerConfig(name='contrib.galore')


def test_what_needs_more_than_gradients_is_refused():
  """Before the first compile."""
  with pytest.raises(ValueError, match="'lbfgs' cannot be used.*value"):
    step([1.0, 1.0], name='lbfgs')


@pytest.mark.parametrize(
  'name', ['adafactor', 'contrib.muon', 'lion', 'novograd', 'sgd']
)
def test_states_are_sharded_as_their_parameters(name, toy):
  """Moments have the sharding of parameters of their shape; sums have none."""
  mesh = jax.sharding.AbstractMesh(
    (1, 2, 1, 1), ('data', 'fsdp', 'tensor', 'sequence')
  )
  spec = jax.sharding.PartitionSpec
  shapes = {
    'w': ((256, 256), spec('fsdp', None)),
    'b': ((6,), spec('fsdp')),
  }
  params = {
    key: jax.ShapeDtypeStruct(
      shape, jnp.float32, sharding=jax.sharding.NamedSharding(mesh, place)
    )
    for key, (shape, place) in shapes.items()
  }
  arguments = {'sgd': {'momentum': 0.9}}.get(name, {})
  optimizer = make_optimizer(OptimizerConfig(name=name, arguments=arguments))
  method = toy.get_method('reinforce')
  state = state_shapes(method, optimizer, params, 1, mesh)
  places = {
    leaf.shape: leaf.sharding.spec for leaf in jax.tree.leaves(state.opt_state)
  }
  matrix = {'adafactor': (256,), 'novograd': ()}.get(name, (256, 256))
  expected = spec('fsdp', None) if len(matrix) == 2 else spec()
  assert places[matrix] == expected
  assert places.get((), spec()) == spec()
