"""Masked arithmetic, group reshapes and the credit scan."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import masking, scan

X = jnp.array([1.0, 2.0, 6.0, jnp.nan])
MASK = jnp.array([1.0, 1.0, 1.0, 0.0])


def test_masked_statistics_ignore_what_is_masked():
  """Sum 9, mean 3, variance (4 + 1 + 9) / 3 or / 2."""
  assert masking.masked_sum(X, MASK) == 9.0
  assert masking.masked_mean(X, MASK) == 3.0
  np.testing.assert_allclose(masking.masked_var(X, MASK), 14 / 3, rtol=1e-6)
  assert masking.masked_var(X, MASK, ddof=1) == 7.0
  assert masking.masked_max(X, MASK) == 6.0
  assert masking.masked_min(X, MASK) == 1.0
  np.testing.assert_array_equal(masking.masked_center(X, MASK), [-2, -1, 3, 0])


def test_empty_masks_give_zero_and_finite_gradients():
  """No division by 0, in the value or in the gradient."""
  for function in (
    masking.masked_mean,
    masking.masked_var,
    masking.masked_max,
    masking.masked_min,
    lambda x, m: masking.masked_center(x, m).sum(),
    lambda x, m: masking.whiten(x, m, 1e-8).sum(),
  ):
    value, grad = jax.value_and_grad(function)(X, jnp.zeros(4))
    assert value == 0.0
    np.testing.assert_array_equal(grad, np.zeros(4))


def test_gradients_do_not_reach_masked_positions():
  """NaN after the mask stays after the mask."""
  grad = jax.grad(lambda x: masking.masked_var(x, MASK))(X)
  np.testing.assert_allclose(grad, [-4 / 3, -2 / 3, 2.0, 0.0], rtol=1e-6)


def test_equal_values_are_centered_to_exactly_zero():
  """E0; subtracting the plain mean of these leaves a remainder."""
  x, mask = jnp.full(10, 0.1), (jnp.arange(10) < 7).astype(jnp.float32)
  assert (x - masking.masked_mean(x, mask))[0] != 0
  np.testing.assert_array_equal(masking.masked_center(x, mask), np.zeros(10))


def test_safe_sqrt_has_no_infinite_gradient():
  """The gradient at 0 is 0, elsewhere 1 / (2 sqrt x)."""
  value, grad = jax.vmap(jax.value_and_grad(masking.safe_sqrt))(
    jnp.array([0.0, 4.0])
  )
  np.testing.assert_array_equal(value, [0.0, 2.0])
  np.testing.assert_array_equal(grad, [0.0, 0.25])


def test_whiten_by_hand():
  """x = 1..4: mean 2.5, sample variance 5/3, so -1.5 / 1.290994 first."""
  x = masking.whiten(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.ones(4), 1e-8)
  np.testing.assert_allclose(
    x, [-1.161895, -0.387298, 0.387298, 1.161895], rtol=1e-5
  )


def test_groups_are_adjacent_rows():
  """Row n * G + g is sample g of prompt n."""
  x = jnp.arange(6)
  np.testing.assert_array_equal(masking.by_group(x, 3), [[0, 1, 2], [3, 4, 5]])
  np.testing.assert_array_equal(masking.ungroup(masking.by_group(x, 3)), x)


def test_outcome_lies_on_the_last_kept_token():
  """Rows end at 2, at 0 (after a gap), and nowhere."""
  mask = jnp.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
  placed = masking.at_last_token(jnp.array([5.0, 6.0, 7.0]), mask)
  np.testing.assert_array_equal(placed, [[0, 0, 5], [6, 0, 0], [0, 0, 0]])


def test_scan_equals_a_python_loop():
  """E1, on random coefficients."""
  rng = np.random.RandomState(0)
  b, decay = rng.normal(size=(2, 3, 7)).astype(np.float32)
  expected, carry = np.zeros_like(b), np.zeros(3, np.float32)
  for t in reversed(range(7)):
    carry = b[:, t] + decay[:, t] * carry
    expected[:, t] = carry
  actual = scan.reverse_linear_scan(jnp.asarray(b), jnp.asarray(decay))
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
