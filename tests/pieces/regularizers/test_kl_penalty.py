"""The KL term of the loss: pointwise values and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

# logp = ln .5, ref = ln .25, then ln .2 and ln .4; x = ref - logp = -+ ln 2.
LOGP, REF = np.log([[0.5, 0.2]]), np.log([[0.25, 0.4]])


# -d/dlogp: k1 has slope 1, k2 slope -x, k3 slope 1 - exp(x).
@pytest.mark.parametrize(
  'estimator, value, push',
  [
    ('k1', [0.693147, -0.693147], [-1.0, -1.0]),
    ('k2', [0.240227, 0.240227], [-0.693147, 0.693147]),
    ('k3', [0.193147, 0.306853], [-0.5, 1.0]),
    ('k1+', [0.693147, -0.693147], [-0.693147, 0.693147]),
    ('k3+', [0.193147, 0.306853], [-0.693147, 0.693147]),
    ('abs', [0.693147, 0.693147], [-1.0, 1.0]),
  ],
)
def test_by_hand(toy, estimator, value, push):
  """coef .1 scales value and push; the metric is not scaled."""
  loss = regularizers.KLPenalty(coef=0.1, estimator=estimator)
  traj = toy.trajectories(np.ones((1, 2)), group_size=1, logp_ref_BT=REF)
  stats = {'logp': jnp.asarray(LOGP, jnp.float32)}
  actual, metrics, _ = loss(LossContext(stats, traj, jax.random.key(0)))
  np.testing.assert_allclose(actual, [0.1 * np.array(value)], rtol=1e-5)
  np.testing.assert_allclose(metrics['policy/kl_ref'], [value], rtol=1e-5)
  coefficient = toy.coefficient(loss, LOGP, logp_ref_BT=REF)
  np.testing.assert_allclose(coefficient, [0.1 * np.array(push)], rtol=1e-5)


@pytest.mark.parametrize('estimator', ['k2', 'k3', 'abs', 'k1+', 'k3+'])
def test_no_pull_at_the_reference(toy, estimator):
  """E0: equal policies have gradient 0; k1 has not (its mean is 0)."""
  loss = regularizers.KLPenalty(estimator=estimator)
  np.testing.assert_array_equal(
    toy.coefficient(loss, LOGP, logp_ref_BT=LOGP), np.zeros((1, 2))
  )
