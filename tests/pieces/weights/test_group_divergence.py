"""Divergence weights of TW-GRPO, by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.statistics import Chunk, GroupDivergence


def evaluate(toy, divergence, mask=None, **fields):
  """Weights of one group."""
  divergence = np.asarray(divergence, np.float32)
  mask = np.ones(divergence.shape) if mask is None else np.asarray(mask)
  traj = toy.trajectories(mask, group_size=len(divergence), **fields)
  stats = {'group_divergence': jnp.asarray(divergence * mask)}
  piece = weights.GroupDivergenceWeight(alpha=1.7)
  return piece(LossContext(stats, traj, jax.random.key(0))).value


def test_the_divergence_by_hand():
  """Two rows, (.7, .1, .1, .1) and (.1, .7, .1, .1).

  u = +-ln(7) / 2 = +-.972955 on two words: e^u - u - 1 = .672796 and
  .350919; the sum of both is 1.02372 for either row.
  """
  logp = jnp.log(
    jnp.array([[[0.7, 0.1, 0.1, 0.1]], [[0.1, 0.7, 0.1, 0.1]]], jnp.float32)
  )
  chunk = Chunk(
    logits_BCV=logp,
    token_BC=jnp.zeros((2, 1), jnp.int32),
    mask_BC=jnp.ones((2, 1)),
    group_tokens_NU=jnp.zeros((1, 2), jnp.int32),
    others={},
  )
  actual = GroupDivergence()(chunk)
  np.testing.assert_allclose(actual, [[1.02372], [1.02372]], rtol=1e-5)


def test_weights_by_hand(toy):
  """D = 0, x, x / 2 at alpha 1.7: 1, 1.7, 1.35 in both rows."""
  actual = evaluate(toy, [[0.0, 0.8, 0.4]] * 2)
  np.testing.assert_allclose(actual, [[1, 1.7, 1.35]] * 2, rtol=1e-6)


def test_range_is_that_of_live_positions(toy):
  """Position 3 is padding in both rows: its 0 is not the smallest D. Position 2
  lives on in row 0 only, and row 1 has no weight there."""
  actual = evaluate(
    toy, [[0.4, 0.8, 0.6, 0.0]] * 2, mask=[[1, 1, 1, 0], [1, 1, 0, 0]]
  )
  np.testing.assert_allclose(
    actual, [[1, 1.7, 1.35, 0], [1, 1.7, 0, 0]], rtol=1e-6
  )


def test_agreement_weighs_everything_alike(toy):
  """D constant: weight 1, the token-mean loss itself."""
  np.testing.assert_allclose(evaluate(toy, [[0.3, 0.3]] * 2), [[1, 1]] * 2)


def test_scale_of_the_divergence_does_not_count(toy):
  """E1: min-max takes out any affine change."""
  base = np.array([[0.1, 0.9, 0.3]] * 2)
  np.testing.assert_allclose(
    evaluate(toy, 5 * base + 2), evaluate(toy, base), rtol=1e-5
  )
