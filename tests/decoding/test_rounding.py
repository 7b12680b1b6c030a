"""Rounded weights of a sampler."""

import jax.numpy as jnp
import numpy as np

from rl_jax.decoding.rounding import rounded

MATRIX = np.float32([[1.0, -254.0], [127.0, 3.0], [0.3, 100.0]])
PARAMS = {
  'model': {'w': jnp.asarray(MATRIX), 'norm': jnp.float32([0.3, 1.001])},
  'value_head': {'w': jnp.asarray(MATRIX)},
}


def test_trainer_is_the_same_object():
  assert rounded(PARAMS, 'trainer') is PARAMS


def test_int8_by_hand():
  """Columns have steps of 1 and 2; vectors and the value head stay."""
  found = rounded(PARAMS, 'int8')
  expected = [[1.0, -254.0], [127.0, 4.0], [0.0, 100.0]]
  np.testing.assert_array_equal(found['model']['w'], expected)
  np.testing.assert_array_equal(found['model']['norm'], PARAMS['model']['norm'])
  np.testing.assert_array_equal(found['value_head']['w'], MATRIX)
  coarse = np.asarray(rounded(PARAMS, 'int4')['model']['w'])
  np.testing.assert_allclose(coarse[:, 0], [0.0, 127.0, 0.0])
  zeros = {'model': {'w': jnp.zeros((2, 2))}}
  assert not rounded(zeros, 'int8')['model']['w'].any()


def test_bfloat16_is_that_of_the_dtype():
  found = rounded(PARAMS, 'bfloat16')['model']['w']
  expected = jnp.asarray(MATRIX).astype(jnp.bfloat16).astype(jnp.float32)
  np.testing.assert_array_equal(found, expected)
  assert (np.asarray(found) != MATRIX).any()
