"""The clipped surrogate: values and gradients by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

# (ratio, A) -> loss and coefficient -dl/dlogp, with clip .2 and dual clip 3:
#   1.5, 1: -min(1.5, 1.2)      0.5, 1: -min(.5, .8)
#   1.5,-1: max(1.5, 1.2)       0.5,-1: max(.5, .8)      5,-1: min(5, 3)
#   5, .5: -min(2.5, .6)
# Where a constant wins the gradient is 0; elsewhere it is A * ratio.
RATIO = np.array([1.5, 0.5, 1.5, 0.5, 5.0, 5.0])
ADV = np.array([1.0, 1.0, -1.0, -1.0, -1.0, 0.5])
LOSS = [-1.2, -0.5, 1.5, 0.8, 3.0, -0.6]
COEFFICIENT = [0.0, 0.5, -1.5, 0.0, 0.0, 0.0]


def table(toy, loss, ratio, advantage):
  """(loss, -gradient, metrics) of one row whose logp_old is -1."""
  logp = jnp.asarray([np.log(ratio) - 1.0], jnp.float32)
  old = np.full(logp.shape, -1.0)
  traj = toy.trajectories(
    np.ones(logp.shape),
    group_size=1,
    logp_old_BT=old,
    advantages_BT=np.asarray([advantage]),
  )
  key = jax.random.key(0)
  value, metrics, _ = loss(LossContext({'logp': logp}, traj, key))
  gradient = jax.grad(
    lambda x: loss(LossContext({'logp': x}, traj, key)).value.sum()
  )(logp)
  return value[0], -gradient[0], metrics


def test_by_hand(toy):
  """The table above; without dual clip entry 4 is 5."""
  loss, coefficient, metrics = table(
    toy, losses.PPOClip(dual_clip=3.0), RATIO, ADV
  )
  np.testing.assert_allclose(loss, LOSS, rtol=1e-5)
  np.testing.assert_allclose(coefficient, COEFFICIENT, rtol=1e-5)
  np.testing.assert_array_equal(
    metrics['policy/clip_fraction'][0], [1, 0, 0, 1, 0, 1]
  )
  np.testing.assert_array_equal(
    metrics['policy/dual_clip_fraction'][0], [0, 0, 0, 0, 1, 0]
  )
  loss, coefficient, metrics = table(toy, losses.PPOClip(), RATIO, ADV)
  np.testing.assert_allclose(loss[4], 5.0, rtol=1e-5)
  np.testing.assert_allclose(coefficient[4], -5.0, rtol=1e-5)
  assert 'policy/dual_clip_fraction' not in metrics


def test_clip_higher(toy):
  """DAPO's .28: ratio 1.25 keeps its gradient, 1.5 is cut at 1.28."""
  loss, coefficient, _ = table(
    toy, losses.PPOClip(clip_high=0.28), np.array([1.25, 1.5]), np.ones(2)
  )
  np.testing.assert_allclose(loss, [-1.25, -1.28], rtol=1e-5)
  np.testing.assert_allclose(coefficient, [1.25, 0.0], rtol=1e-5)


def test_clip_low(toy):
  """With clip_low .4 a bad token is pushed down until ratio .6."""
  loss, coefficient, _ = table(
    toy, losses.PPOClip(clip_low=0.4), np.array([0.7, 0.5]), -np.ones(2)
  )
  np.testing.assert_allclose(loss, [0.7, 0.6], rtol=1e-5)
  np.testing.assert_allclose(coefficient, [-0.7, 0.0], rtol=1e-5)


def test_on_policy_gradient_is_reinforce(toy):
  """At ratio 1 the coefficient is A, whatever the limits. E1."""
  adv = np.array([0.3, -2.0, 0.0])
  for loss in (
    losses.PPOClip(),
    losses.PPOClip(clip_low=0.0, clip_high=1.0, dual_clip=1.5),
    losses.Reinforce(),
  ):
    _, coefficient, _ = table(toy, loss, np.ones(3), adv)
    np.testing.assert_allclose(coefficient, adv, rtol=1e-6)


def test_extreme_log_ratios_stay_finite(toy):
  """50 nats are cut to 20 before the exponential."""
  loss, coefficient, _ = table(
    toy, losses.PPOClip(), np.exp([50.0, -50.0]), np.array([-1.0, 1.0])
  )
  assert np.isfinite(loss).all() and np.isfinite(coefficient).all()


def test_the_dual_clip_is_off_without_a_leaf():
  """None adds nothing to the pytree; a number adds one float."""
  assert len(jax.tree.leaves(losses.PPOClip())) == 2
  assert len(jax.tree.leaves(losses.PPOClip(dual_clip=3.0))) == 3
