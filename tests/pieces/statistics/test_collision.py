"""log sum_v p_v^2."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.statistics import Chunk, Collision


def collision(p):
  logits = jnp.log(jnp.asarray(p, jnp.float32))[None, None] + 3.0
  chunk = Chunk(
    logits_BCV=logits,
    token_BC=jnp.zeros((1, 1), jnp.int32),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={},
  )
  return float(Collision()(chunk)[0, 0])


def test_by_hand():
  """0.25 + 0.09 + 0.04; a uniform one of four; a certain token."""
  np.testing.assert_allclose(collision([0.5, 0.3, 0.2]), np.log(0.38), 1e-6)
  np.testing.assert_allclose(collision([0.25] * 4), -np.log(4.0), 1e-6)
  np.testing.assert_allclose(collision([1.0, 1e-30]), 0.0, atol=1e-6)
