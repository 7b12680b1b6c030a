"""KL in the reward on logp_old = [-1, -2], logp_ref = [-1.5, -1], coef .1."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

# k1 = logp_old - logp_ref = [.5, -1].
OLD, REF = np.array([[-1.0, -2.0, 0.0]]), np.array([[-1.5, -1.0, 0.0]])
MASK = np.array([[1, 1, 0]])


def row(toy):
  """One response of two tokens, padded to three."""
  return toy.trajectories(MASK, group_size=1, logp_old_BT=OLD, logp_ref_BT=REF)


def test_token_rewards(toy):
  """-.05 on the first token; outcome 1 plus .1 on the last one."""
  piece = shaping.KLInReward(coef=0.1)
  actual = piece(CreditContext(jnp.array([1.0]), row(toy))).value
  np.testing.assert_allclose(actual, [[-0.05, 1.1, 0.0]], rtol=1e-6)


def test_token_rewards_are_kept(toy):
  """Earlier token rewards are added to, not replaced."""
  piece = shaping.KLInReward(coef=0.1)
  actual = piece(CreditContext(jnp.array([[2.0, 3.0, 0.0]]), row(toy))).value
  np.testing.assert_allclose(actual, [[1.95, 3.1, 0.0]], rtol=1e-6)


def test_sequence_reward(toy):
  """1 - .1 * (.5 - 1)."""
  piece = shaping.KLInReward(coef=0.1, level='sequence')
  np.testing.assert_allclose(
    piece(CreditContext(jnp.array([1.0]), row(toy))).value, [1.05]
  )
  with pytest.raises(ValueError, match='level = sequence'):
    piece(CreditContext(jnp.ones((1, 3)), row(toy)))


def test_other_estimators(toy):
  """k2 = [.125, .5]."""
  piece = shaping.KLInReward(coef=0.1, estimator='k2', level='sequence')
  np.testing.assert_allclose(
    piece(CreditContext(jnp.array([1.0]), row(toy))).value, [1 - 0.0625]
  )


def test_zero_coef_places_the_outcome(toy):
  """Without the penalty only the outcome on the last token is left. E0."""
  actual = shaping.KLInReward(coef=0.0)(
    CreditContext(jnp.array([1.0]), row(toy))
  ).value
  np.testing.assert_array_equal(actual, [[0.0, 1.0, 0.0]])
