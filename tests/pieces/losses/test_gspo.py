"""The sequence ratio of GSPO on one row of four tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses

# Mean log-ratio (.1 - .3 + .2 + .04) / 4 = .01: s = e^.01 = 1.010050. (The
# product of the ratios would be e^.04 = 1.040811.)
CHANGE = np.array([[0.1, -0.3, 0.2, 0.04]])
OLD = np.full((1, 4), -1.0)
WIDE = losses.GSPO(clip_low=0.2, clip_high=0.2)


def coefficient(toy, loss, change=CHANGE, adv=1.0, **fields):
  """-d(sum of the loss)/d logp with one advantage for the row."""
  return toy.coefficient(
    loss,
    OLD + change,
    logp_old_BT=OLD,
    advantages_BT=np.full(OLD.shape, adv),
    **fields,
  )


def test_by_hand(toy):
  """Every token gets A s; a mean over four tokens makes it .252513."""
  np.testing.assert_allclose(
    coefficient(toy, WIDE) / 4, np.full((1, 4), 0.252513), rtol=1e-5
  )


def test_equals_the_gradient_of_the_ratio_itself(toy):
  """E1: -A exp(mean d) differentiated directly."""
  direct = jax.grad(lambda x: jnp.exp((x - OLD).mean()))(
    jnp.asarray(OLD + CHANGE, jnp.float32)
  )
  np.testing.assert_allclose(coefficient(toy, WIDE) / 4, direct, rtol=1e-5)


@pytest.mark.parametrize(
  'change, adv, kept',
  [(3.5e-4, 1, 1), (4.5e-4, 1, 0), (-2.5e-4, -1, 1), (-3.5e-4, -1, 0)],
)
def test_the_row_is_clipped_as_a_whole(toy, change, adv, kept):
  """Limits 4e-4 above and 3e-4 below, each on its own side of A."""
  actual = coefficient(toy, losses.GSPO(), np.full((1, 4), change), adv)
  np.testing.assert_allclose(actual, np.full((1, 4), adv * kept), rtol=1e-3)


def test_only_the_mean_counts(toy):
  """E1: moving log-ratio between tokens changes nothing."""
  even = coefficient(toy, WIDE, np.full((1, 4), 0.01))
  np.testing.assert_allclose(coefficient(toy, WIDE), even, rtol=1e-5)


def test_masked_tokens_do_not_enter_the_mean(toy):
  """Without token 1 the mean is .34 / 3: s = 1.120005."""
  mask = np.array([[1.0, 0, 1, 1]])
  actual = coefficient(toy, WIDE, mask_BT=mask)
  np.testing.assert_allclose(actual[0, [0, 2, 3]], 1.120005, rtol=1e-5)
