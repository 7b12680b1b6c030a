"""Target distributions of GDC by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

# Two answers of one token. Reference (.7, .3), proposal (.5, .5).
REF, OLD = np.log([[0.7], [0.3]]), np.log([[0.5], [0.5]])
REWARD = np.array([[0.0], [1.0]])


def coefficient(toy, loss, old=OLD, **fields):
  """-dl/dlogp of the two rows."""
  return toy.coefficient(
    loss,
    OLD,
    logp_old_BT=old,
    logp_ref_BT=REF,
    advantages_BT=REWARD,
    **fields,
  )[:, 0]


def test_constraint_by_hand(toy):
  """P = (0, .3): weights 0 and .6, whose mean .3 is Z."""
  np.testing.assert_allclose(
    coefficient(toy, losses.GDC()), [0, 0.6], rtol=1e-5
  )
  traj = toy.trajectories(
    np.ones((2, 1)),
    group_size=2,
    logp_old_BT=OLD,
    logp_ref_BT=REF,
    advantages_BT=REWARD,
  )
  logp = jnp.asarray(OLD, jnp.float32)
  metrics = losses.GDC()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  ).metrics
  np.testing.assert_allclose(metrics['policy/partition'], 0.3, rtol=1e-5)


def test_posterior_by_hand(toy):
  """exp(R / .5): weights 1.4 and .6 e^2 = 4.433434. Over their mean they are
  twice the posterior (.239996, .760004)."""
  loss = losses.GDC(target='posterior', temperature=0.5)
  np.testing.assert_allclose(coefficient(toy, loss), [1.4, 4.433434], rtol=1e-5)
  loss = losses.GDC(target='posterior', temperature=0.5, normalize=True)
  np.testing.assert_allclose(
    coefficient(toy, loss), [0.479992, 1.520008], rtol=1e-5
  )


def test_rows_of_the_target_have_equal_weights(toy):
  """q = p: maximum likelihood, here with p = the posterior at .5."""
  loss = losses.GDC(target='posterior', temperature=0.5)
  target = np.log([[0.239996], [0.760004]])
  actual = coefficient(toy, loss, old=target)
  np.testing.assert_allclose(actual[0], actual[1], rtol=1e-4)


def test_from_the_reference_it_is_reinforce(toy):
  """E1: q = the reference and target P = pi_ref R: the weight is R."""
  actual = coefficient(toy, losses.GDC(), old=REF)
  np.testing.assert_allclose(actual, REWARD[:, 0], rtol=1e-6)


def test_normalised_weights_ignore_the_scale_of_the_target(toy):
  """E1: rows with ten times the reward."""
  loss = losses.GDC(normalize=True)
  np.testing.assert_allclose(coefficient(toy, loss), [0, 2], rtol=1e-5)
  traj = dict(logp_old_BT=OLD, logp_ref_BT=REF, advantages_BT=10 * REWARD)
  actual = toy.coefficient(loss, OLD, **traj)[:, 0]
  np.testing.assert_allclose(actual, [0, 2], rtol=1e-5)


@pytest.mark.parametrize('normalize, expected', [(False, 0.6), (True, 2.0)])
def test_a_row_outside_of_the_target_weighs_nothing(toy, normalize, expected):
  """exp(100) 0 is 0: the reference is e^100 times likelier on the wrong row.

  The other row keeps .3 / .5, over the mean of both 2.
  """
  old = np.array([[REF[0, 0] - 100.0], [OLD[1, 0]]])
  found = coefficient(toy, losses.GDC(normalize=normalize), old=old)
  np.testing.assert_allclose(found, [0, expected], rtol=1e-5)


def test_no_satisfied_row_is_no_gradient(toy):
  """Z = 0 divides nothing."""
  loss = losses.GDC(normalize=True)
  actual = coefficient(toy, loss, weight_B=np.array([1.0, 0.0]))
  assert np.isfinite(actual).all() and actual[0] == 0


def test_long_rows_are_not_cut(toy):
  """Log-ratios of -40 and -41.0986 weigh 1 and 1/3 after normalisation by Z."""
  old = np.array([[39.0], [40.0 - np.log(1.5)]])
  ref = np.array([[-1.0], [-1.0 - np.log(4.5)]])
  loss = losses.GDC(normalize=True)
  found = toy.coefficient(
    loss,
    old,
    logp_old_BT=old,
    logp_ref_BT=ref,
    advantages_BT=np.ones((2, 1)),
  )[:, 0]
  ratio = np.exp(ref - old)[:, 0]
  np.testing.assert_allclose(found, ratio / ratio.mean(), rtol=1e-5)
  assert found[0] > 1.2 * found[1]
  # Unnormalised weights underflow, which is right: both are rare by far.
  plain = toy.coefficient(
    losses.GDC(),
    old,
    logp_old_BT=old,
    logp_ref_BT=ref,
    advantages_BT=np.ones((2, 1)),
  )[:, 0]
  np.testing.assert_allclose(plain, ratio, rtol=1e-4)
