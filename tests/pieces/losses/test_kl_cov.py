"""KL-Cov on six tokens; covariances as in the Clip-Cov test."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

# mean logp -1.558333, mean A 0: cov = A (logp - mean):
# [1.5083, 1.4583, -1.4417, .4417, -1.3583, 2.4417]; the largest is token 5.
LOGP = np.array([[-0.05, -0.1, -3.0, -2.0, -0.2, -4.0]])
ADV = np.array([[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]])


def coefficient(toy, loss, logp=LOGP, old=LOGP, adv=ADV, **fields):
  """-dL/dlogp of the sum of the loss."""
  return toy.coefficient(
    loss, logp, logp_old_BT=old, advantages_BT=adv, **fields
  )


def test_by_hand(toy):
  """Token 5 rose by .1 nats: A e^.1 - 1 = -2.105171; tokens at ratio 1: A."""
  old = LOGP - np.array([[0, 0, 0, 0, 0, 0.1]])
  actual = coefficient(toy, losses.KLCov(), old=old)
  np.testing.assert_allclose(actual, [[1, 1, 1, -1, -1, -2.105171]], rtol=1e-5)
  # It fell: the penalty pulls it back up, e^-.1 = .904837.
  actual = coefficient(toy, losses.KLCov(coef=2.0), old=2 * LOGP - old)
  np.testing.assert_allclose(actual[0, 5], -0.904837 + 2.0, rtol=1e-5)


def test_two_tokens_are_selected(toy):
  """fraction .4 of 6 tokens is floor(2.4) = 2: tokens 5 and 0 pay .1 for a rise
  of .1 on top of -A e^.1 = -+1.105171."""
  old = LOGP - 0.1
  traj = toy.trajectories(
    np.ones((1, 6)), group_size=1, logp_old_BT=old, advantages_BT=ADV
  )
  stats = {'logp': jnp.asarray(LOGP, jnp.float32)}
  loss, metrics, _ = losses.KLCov(fraction=0.4)(
    LossContext(stats, traj, jax.random.key(0))
  )
  np.testing.assert_array_equal(
    metrics['policy/selected_fraction'], [[1, 0, 0, 0, 0, 1]]
  )
  expected = -1.105171 * ADV + [[0.1, 0, 0, 0, 0, 0.1]]
  np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_no_spurious_gradient_at_the_old_policy(toy):
  """|d| has slope 0 at d = 0: the coefficient of every token is A. E0."""
  np.testing.assert_array_equal(coefficient(toy, losses.KLCov()), ADV)


def test_without_coef_it_is_the_unclipped_surrogate(toy):
  """A * ratio, also far outside any clip."""
  ratio = np.array([[3.0, 0.2, 1.0, 2.0, 0.5, 4.0]])
  actual = coefficient(
    toy, losses.KLCov(coef=0.0), logp=LOGP, old=LOGP - np.log(ratio)
  )
  np.testing.assert_allclose(actual, ADV * ratio, rtol=1e-5)


def test_selection_ignores_constants(toy):
  """Adding a constant to A moves only the surrogate; coef 1 stays on 5."""
  old = LOGP - 0.1
  with_penalty = coefficient(toy, losses.KLCov(), old=old, adv=ADV + 3.0)
  without = coefficient(toy, losses.KLCov(coef=0.0), old=old, adv=ADV + 3.0)
  np.testing.assert_allclose(
    without - with_penalty, [[0, 0, 0, 0, 0, 1]], atol=1e-5
  )


def test_dropped_rows_are_not_ranked(toy):
  """A row of weight 0 with a huge covariance does not take the place."""
  logp = np.concatenate([LOGP, 10 * LOGP])
  adv = np.concatenate([ADV, 10 * ADV])
  actual = coefficient(
    toy,
    losses.KLCov(),
    logp=logp,
    old=logp - 0.1,
    adv=adv,
    weight_B=np.array([1.0, 0.0]),
  )
  base = np.exp(0.1) * ADV[0]
  np.testing.assert_allclose(
    actual[0], base - np.array([0, 0, 0, 0, 0, 1]), rtol=1e-5
  )
