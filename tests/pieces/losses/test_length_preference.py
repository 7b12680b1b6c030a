"""lambda-GRPO by hand: weights of a group, and the gradient of lambda."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import update
from rl_jax.learning.state import fresh_state
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import AggregationContext, LossContext

KEY = jax.random.key(0)
# Lengths 1 and 3 have z = -1 and 1. With spread .5 and lambda 2, h = .5, 1.5
# and g = .25, 2.25: softmax gives 1 / (1 + e^2) = .119203 to the short row.
MASK = np.array([[1.0, 0, 0], [1, 1, 1]])


def rows(toy, **fields):
  """One group of the two rows; their old log-probs are the current ones."""
  return toy.trajectories(
    MASK,
    group_size=2,
    logp_old_BT=-np.ones(MASK.shape),
    advantages_BT=np.ones(MASK.shape),
    **fields,
  )


def test_weights_by_hand(toy):
  """2 softmax(g); an invalid row leaves 1 to the other."""
  piece = losses.LengthPreference(spread=0.5, eps=1e-9)
  found = piece._weights(rows(toy), jnp.float32(2.0))
  np.testing.assert_allclose(found, [0.238406, 1.761594], rtol=1e-5)
  found = piece._weights(rows(toy, valid_B=np.array([0.0, 1.0])), 2.0)
  np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-6)


@pytest.mark.parametrize('exponent, expected', [(1e3, [0, 2]), (-1e3, [2, 0])])
def test_a_large_exponent_does_not_overflow(toy, exponent, expected):
  """1.5^1000 and .5^-1000 are above the float32 maximum: one row has all."""
  piece = losses.LengthPreference(spread=0.5, eps=1e-9)

  def found(exponent):
    return piece._weights(rows(toy), exponent)

  np.testing.assert_allclose(found(jnp.float32(exponent)), expected)
  slope = jax.jacobian(found)(jnp.float32(exponent))
  np.testing.assert_array_equal(slope, [0, 0])


def test_at_zero_it_is_the_clip(toy):
  """E1: lambda = 0 gives PPO's clip, whatever the lengths."""
  piece, stats = losses.LengthPreference(), {'logp': jnp.full((2, 3), -0.7)}
  value = piece(
    LossContext(stats, rows(toy), KEY, params=piece.init_params())
  ).value
  expected = losses.PPOClip()(LossContext(stats, rows(toy), KEY)).value
  np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_the_gradient_of_lambda_by_hand(toy):
  """At lambda = 0 of the row sums -1 and -3 of a ratio of 1, rate 10.

  df/dlambda = (G/4) (log h_k - log h_j) = .5 log(h_k / h_j), h = .5, 1.5: of
  the long row .549306, so dL = -(1 (-.549306) + 3 (.549306)) 10 = -10.98612.
  """
  piece = losses.LengthPreference(spread=0.5, eps=1e-9, rate=10.0)
  traj, stats = rows(toy), {'logp': -jnp.ones((2, 3))}

  def total(params):
    value = piece(LossContext(stats, traj, KEY, params=params)).value
    return (value * traj.mask_BT).sum()

  gradient = jax.grad(total)(piece.init_params())['exponent']
  np.testing.assert_allclose(gradient, -10.98612, rtol=1e-5)


@pytest.mark.parametrize(
  'microbatches', [pytest.param(1, marks=pytest.mark.slow), 2]
)
def test_an_update_learns_lambda(tiny, microbatches):
  """E1 over microbatches: a step of plain gradient descent, in the parameters
  of the training state."""
  piece = losses.LengthPreference(rate=1.0, spread=0.4)
  method = Method(losses=(piece,), aggregation=TokenMean())
  traj = tiny.rollout()
  draw = np.random.default_rng(0).normal(size=traj.weight_B.shape)
  advantage_B1 = jnp.asarray(draw, jnp.float32)[:, None]
  traj = traj.replace(
    logp_old_BT=traj.logp_behaviour_BT,
    advantages_BT=advantage_B1 * traj.mask_BT,
  )

  params = tiny.params()

  def step(count):
    optimizer = optax.sgd(1.0)
    state = fresh_state(method, optimizer, params, 0)
    return update.update_minibatch(
      Forward(model=tiny.CFG, microbatches=count),
      state,
      update.Batch(frozen={}, method=method, traj=traj, key=KEY),
      jnp.arange(traj.num_prompts),
      optimizer=optimizer,
      reuse_scores=False,
    )

  state, _ = jax.jit(step, static_argnums=0)(microbatches)
  forward = Forward(model=tiny.CFG)
  logp_BT = token_statistics(forward, params, traj, ())['logp']

  def loss(exponent):
    own = {'exponent': exponent}
    value = piece(LossContext({'logp': logp_BT}, traj, KEY, params=own)).value
    weight_BT = TokenMean()(
      AggregationContext(traj.mask_BT, traj.weight_B, traj.group_size)
    )
    return (value * weight_BT).sum()

  gradient = jax.grad(loss)(jnp.float32(0.0))
  learned = state.params['pieces']['losses.0.LengthPreference']['exponent']
  assert abs(gradient) > 1e-4
  np.testing.assert_allclose(learned, -gradient, rtol=1e-4)
