"""The soft gate of SAPO by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

# tau (r - 1) = log 3, so that the sigmoid is 3/4 and its slope 3/16:
#   A = 1, tau 1: r = 2.098612, loss -4 (3/4) = -3, coefficient 3/4 r.
#   A = -1, tau 1.05: r = 2.046297, loss 3 / 1.05, coefficient -3/4 r.
RATIO = 1.0 + np.log(3) / np.array([[1.0, 1.05]])
ADV = np.array([[1.0, -1.0]])


def coefficient(toy, ratio, adv, loss=None):
  """-dl/dlogp."""
  old = np.full(ratio.shape, -1.0)
  return toy.coefficient(
    loss or losses.SAPO(),
    old + np.log(ratio),
    logp_old_BT=old,
    advantages_BT=adv,
  )


def test_by_hand(toy):
  """Losses -3 and 2.857143; coefficients 1.573959 and -1.534723; the
  slope is 4 (3/4) (1/4)."""
  old = np.full((1, 2), -1.0)
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, logp_old_BT=old, advantages_BT=ADV
  )
  logp = jnp.asarray(old + np.log(RATIO), jnp.float32)
  value, metrics, _ = losses.SAPO()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  )
  np.testing.assert_allclose(metrics['policy/gate'], 0.75, rtol=1e-5)
  np.testing.assert_allclose(value, [[-3.0, 2.857143]], rtol=1e-5)
  np.testing.assert_allclose(
    coefficient(toy, RATIO, ADV), [[1.573959, -1.534723]], rtol=1e-5
  )


def test_on_policy_it_is_reinforce(toy):
  """E1: the gate's slope at ratio 1 is 1, whatever the temperature."""
  adv = np.array([[0.7, -2.0]])
  for tau in (0.5, 1.0, 4.0):
    loss = losses.SAPO(positive_temperature=tau, negative_temperature=tau)
    np.testing.assert_allclose(
      coefficient(toy, np.ones((1, 2)), adv, loss), adv, rtol=1e-6
    )


def test_the_gradient_fades_on_both_sides(toy):
  """Far from ratio 1 less is left of it, per unit of ratio."""
  ratio = np.array([[0.1, 0.5, 1.0, 2.0, 5.0]])
  slope = coefficient(toy, ratio, np.ones((1, 5))) / ratio
  assert (np.diff(slope[0, :3]) > 0).all()
  assert (np.diff(slope[0, 2:]) < 0).all()


def test_linear_in_the_advantage(toy):
  """E1: the sign chooses the temperature, the size only scales."""
  np.testing.assert_allclose(
    coefficient(toy, RATIO, 3 * ADV),
    3 * coefficient(toy, RATIO, ADV),
    rtol=1e-6,
  )
