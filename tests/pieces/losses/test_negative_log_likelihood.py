"""Maximum likelihood of given tokens."""

import jax
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

LOGP = np.array([[-1.0, -0.5], [-2.0, -0.25]])


def test_every_token_is_pushed_up_alike(toy):
  """-dL/dlogp is 1 on every token, whatever its probability."""
  coefficient = toy.coefficient(losses.NegativeLogLikelihood(), LOGP)
  np.testing.assert_array_equal(coefficient, np.ones((2, 2)))


def test_it_is_reinforce_with_advantage_one(toy):
  """E0, and the metric is the loss itself."""
  traj = toy.trajectories(
    np.ones((2, 2)), group_size=2, advantages_BT=np.ones((2, 2))
  )
  arguments = ({'logp': LOGP}, traj, jax.random.key(0))
  loss, metrics, _ = losses.NegativeLogLikelihood()(LossContext(*arguments))
  np.testing.assert_array_equal(
    loss, losses.Reinforce()(LossContext(*arguments)).value
  )
  np.testing.assert_array_equal(metrics['train/nll'], loss)
