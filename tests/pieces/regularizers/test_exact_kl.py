"""The exact divergence as a loss: by hand, and its named policy."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.method import Method
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.policies import Average, Frozen
from rl_jax.pieces.roles import LossContext


def test_loss_by_hand(toy):
  """coef 0.5 of 0.2 and 0.4 nats; the gradient is the coefficient."""
  kl = jnp.array([[0.2, 0.4]])
  traj = toy.trajectories(np.ones((1, 2)), group_size=1)

  def loss(kl):
    value = regularizers.ExactKL(coef=0.5)(
      LossContext({'full_kl': kl}, traj, jax.random.key(0))
    ).value
    return value.sum(), value

  (_, value), gradient = jax.value_and_grad(loss, has_aux=True)(kl)
  np.testing.assert_allclose(value, [[0.1, 0.2]], rtol=1e-6)
  np.testing.assert_allclose(gradient, [[0.5, 0.5]])


def test_it_asks_for_the_reference_of_the_method():
  """Frozen by default, or by the rule that the method names."""
  method = Method(losses=(losses.PPOClip(), regularizers.ExactKL()))
  assert method.policies() == {'reference': Frozen()}
  average = Average(decay=0.9)
  assert method.replace(reference=average).policies() == {'reference': average}
