"""SubPO on the sets {1, 2}, {2, 3}, {1, 2}, {4}: gains 2, 1, 0, 1."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

GAINS = np.array([[2.0, 1.0, 0.0, 1.0]])


def row(toy, gains=GAINS, mask=None):
  """One response."""
  mask = np.ones_like(gains) if mask is None else mask
  return toy.trajectories(
    mask, group_size=1, extras={'marginal_gain_BT': gains}
  )


def test_by_hand(toy):
  """Future gains 4, 2, 1, 1; the first is F of the whole response."""
  adv = credit.SetGains()(CreditContext(jnp.zeros(1), row(toy))).value
  np.testing.assert_allclose(adv, [[4, 2, 1, 1]])
  adv = credit.SetGains(coef=0.5)(
    CreditContext(jnp.array([10.0]), row(toy))
  ).value
  np.testing.assert_allclose(adv, [[12, 11, 10.5, 10.5]])


def test_coef_zero_is_reinforce(toy):
  """E0: the row's reward on every token."""
  adv = credit.SetGains(coef=0.0)(
    CreditContext(jnp.array([0.7]), row(toy))
  ).value
  np.testing.assert_array_equal(adv, np.full((1, 4), 0.7, np.float32))


def test_environment_tokens_pass_credit_through(toy):
  """E0: gains on masked tokens are not read."""
  gains = np.array([[2.0, 9.0, 1.0, 0.0, -9.0, 1.0]])
  mask = np.array([[1, 0, 1, 1, 0, 1]])
  adv = credit.SetGains()(
    CreditContext(jnp.zeros(1), row(toy, gains, mask))
  ).value
  np.testing.assert_array_equal(adv[:, mask[0] > 0], [[4, 2, 1, 1]])
