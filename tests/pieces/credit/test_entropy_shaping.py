"""The entropy bonus of EGPO, lambda .4 and alpha 2."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def shaped(toy, adv, entropy, **fields):
  """One one-token row an advantage."""
  entropy = np.asarray(entropy)[:, None]
  traj = toy.trajectories(
    np.ones(entropy.shape), group_size=1, entropy_BT=entropy
  )
  return credit.EntropyShaping(**fields)(
    CreditContext(jnp.asarray(adv), traj)
  ).value


def test_by_hand(toy):
  """1 + .4 * .3; 1 + .4 * min(2, 1/2); -1 + .4 * .3; nothing at A = 0."""
  actual = shaped(toy, [1.0, 1.0, -1.0, 0.0], [0.3, 2.0, 0.3, 1.0])
  np.testing.assert_allclose(actual, [1.12, 1.2, -0.88, 0.0], rtol=1e-6)


def test_zero_coef_is_grpo_and_signs_stay(toy):
  """E0 for coef 0; coef < alpha keeps every sign."""
  adv = jnp.array([2.0, -0.1, 0.3, -4.0])
  entropy = [5.0, 5.0, 0.1, 9.0]
  np.testing.assert_array_equal(shaped(toy, adv, entropy, coef=0.0), adv)
  np.testing.assert_array_equal(
    np.sign(shaped(toy, adv, entropy, coef=1.9)), np.sign(adv)
  )


def test_the_span_decides_which_tokens_count(toy):
  """Mean of .1 and .3 over the response, .3 over the thinking token."""
  traj = toy.trajectories(
    np.array([[1, 1, 0]]),
    group_size=1,
    entropy_BT=np.array([[0.1, 0.3, 99.0]]),
    extras={'think_mask_BT': np.array([[0, 1, 1]])},
  )
  one = jnp.ones(1)
  response = credit.EntropyShaping()(CreditContext(one, traj)).value
  think = credit.EntropyShaping(span='think')(CreditContext(one, traj)).value
  np.testing.assert_allclose(response, [1.08], rtol=1e-6)
  np.testing.assert_allclose(think, [1.12], rtol=1e-6)
  with pytest.raises(ValueError, match='think_mask_BT'):
    credit.EntropyShaping(span='think')(
      CreditContext(one, traj.replace(extras={}))
    )
