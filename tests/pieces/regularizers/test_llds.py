"""The displacement hinge by hand: two actions around an observation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

# Falls .4 and -.1 in the first action (sum .3), -.2 and .1 in the second (-.1).
LOGP = np.array([[-1.4, -0.9, 0.0, -0.8, -1.1]])
OLD = np.array([[-1.0, -1.0, 0.0, -1.0, -1.0]])
MASK = np.array([[1.0, 1, 0, 1, 1]])
GOOD = np.ones((1, 5))


def coefficient(toy, piece, logp=LOGP, adv=GOOD):
  """-d(sum of the loss)/d logp."""
  return toy.coefficient(
    piece, logp, mask_BT=MASK, logp_old_BT=OLD, advantages_BT=adv
  )


@pytest.mark.parametrize(
  'gate, value, expected',
  # Token 0 pays .2 (.4); with the response gate (sum .2) token 4 pays .2 (.1).
  [
    ('action', 0.02, [[0.2, 0, 0, 0, 0]]),
    ('response', 0.025, [[0.2, 0, 0, 0, 0.2]]),
  ],
)
def test_by_hand(toy, gate, value, expected):
  """Mean over the four trained tokens, and the push on each."""
  piece = regularizers.LLDS(gate=gate)
  traj = toy.trajectories(
    MASK, group_size=1, logp_old_BT=OLD, advantages_BT=GOOD
  )
  stats = {'logp': jnp.asarray(LOGP, jnp.float32)}
  loss = piece(LossContext(stats, traj, jax.random.key(0))).value
  np.testing.assert_allclose((loss * MASK).sum() / 4, value, rtol=1e-5)
  np.testing.assert_allclose(coefficient(toy, piece), expected, rtol=1e-6)


def test_nothing_at_the_old_policy_or_without_coef(toy):
  """E0 for value and gradient: the hinge has slope 0 at 0."""
  for piece, logp in (
    (regularizers.LLDS(), OLD),
    (regularizers.LLDS(coef=0.0), LOGP),
  ):
    np.testing.assert_array_equal(coefficient(toy, piece, logp), 0)


def test_bad_rows_are_free_and_zero_advantage_is_not(toy):
  """A < 0 may become unlikely; A = 0 is held, as in the code."""
  piece = regularizers.LLDS()
  np.testing.assert_array_equal(coefficient(toy, piece, adv=-GOOD), 0)
  np.testing.assert_allclose(
    coefficient(toy, piece, adv=0 * GOOD), [[0.2, 0, 0, 0, 0]], rtol=1e-6
  )


def test_a_bad_token_ends_an_action(toy):
  """With A < 0 at token 1 the first action is token 0 only: still .4 > 0."""
  adv = np.array([[1.0, -1, 1, 1, 1]])
  old = np.array([[-1.0, -1.9, 0.0, -1.0, -1.0]])  # token 1 rose by 1
  base = dict(mask_BT=MASK, logp_old_BT=old)
  piece = regularizers.LLDS()
  alone = toy.coefficient(piece, LOGP, advantages_BT=adv, **base)
  np.testing.assert_allclose(alone, [[0.2, 0, 0, 0, 0]], rtol=1e-6)
  together = toy.coefficient(piece, LOGP, advantages_BT=GOOD, **base)
  np.testing.assert_array_equal(together, 0)
