"""The KL term of DeepSeek-V3.2: values, gradients and their expectation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
# logp = ln .5, ref = ln .25, then ln .2 and ln .4; x = ref - logp = -+ ln 2.
LOGP, REF = np.log([[0.5, 0.2]]), np.log([[0.25, 0.4]])
OLD = np.log([[0.4, 0.4]])  # r = 1.25 and .5
SAME = {'logp_old_BT': LOGP, 'logp_ref_BT': REF}


def evaluate(toy, piece, **fields):
  """(loss, metrics) at LOGP."""
  traj = toy.trajectories(np.ones((1, 2)), group_size=1, **fields)
  return piece(
    LossContext({'logp': jnp.asarray(LOGP, jnp.float32)}, traj, KEY)
  )[:2]


# k3 = .5 - 1 + ln 2 and 2 - 1 - ln 2, d k3 = 1 - e^x = .5, -1; the slope of
# r k is r (k + dk), for k3 r times -x, for k1 r (1 - x).
@pytest.mark.parametrize(
  'estimator, value, slope',
  [
    ('k1', [0.866434, -0.346574], [2.116434, 0.153426]),
    ('k3', [0.241434, 0.153426], [0.866434, -0.346574]),
  ],
)
def test_by_hand(toy, estimator, value, slope):
  """coef .1 scales value and slope; the metric is not scaled."""
  piece = regularizers.CorrectedKL(coef=0.1, estimator=estimator)
  fields = {'logp_old_BT': OLD, 'logp_ref_BT': REF}
  actual, metrics = evaluate(toy, piece, **fields)
  np.testing.assert_allclose(actual, [0.1 * np.array(value)], rtol=1e-5)
  np.testing.assert_allclose(metrics['policy/kl_ref'], [value], rtol=1e-5)
  pushed = toy.coefficient(piece, LOGP, **fields)
  np.testing.assert_allclose(pushed, [-0.1 * np.array(slope)], rtol=1e-5)


def test_on_policy_it_has_the_value_of_the_plain_term(toy):
  """E0 of the value; the gradient is that of k2, E1: no k3's."""
  found, _ = evaluate(toy, regularizers.CorrectedKL(coef=0.1), **SAME)
  plain, _ = evaluate(toy, regularizers.KLPenalty(coef=0.1), **SAME)
  np.testing.assert_array_equal(found, plain)
  pushed = toy.coefficient(regularizers.CorrectedKL(coef=0.1), LOGP, **SAME)
  square = regularizers.KLPenalty(coef=0.1, estimator='k2')
  expected = toy.coefficient(square, LOGP, **SAME)
  np.testing.assert_allclose(pushed, expected, rtol=1e-5)


@pytest.mark.parametrize('estimator', ['k1', 'k3'])
def test_it_is_unbiased_on_tokens_of_an_old_policy(toy, estimator):
  """E1: summed over three tokens with their old probabilities, the value is
  KL(policy || ref), and the gradient is its gradient in the logits."""
  logits = jnp.array([0.3, -0.5, 1.0])
  old, ref = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.2, 0.2, 0.6])
  traj = toy.trajectories(
    np.ones((1, 3)),
    group_size=1,
    logp_old_BT=np.log(old)[None],
    logp_ref_BT=np.log(ref)[None],
  )
  piece = regularizers.CorrectedKL(coef=1.0, estimator=estimator)

  def estimate(logits):
    logp_BT = jax.nn.log_softmax(logits)[None]
    return (
      old * piece(LossContext({'logp': logp_BT}, traj, KEY)).value[0]
    ).sum()

  def exact(logits):
    logp = jax.nn.log_softmax(logits)
    return (jnp.exp(logp) * (logp - jnp.log(ref))).sum()

  found, expected = jax.value_and_grad(estimate), jax.value_and_grad(exact)
  for one, other in zip(found(logits), expected(logits), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_no_pull_at_the_reference(toy):
  """E0: equal policies have gradient 0, whoever drew the tokens."""
  pushed = toy.coefficient(
    regularizers.CorrectedKL(), LOGP, logp_ref_BT=LOGP, logp_old_BT=OLD
  )
  np.testing.assert_array_equal(pushed, np.zeros((1, 2)))
