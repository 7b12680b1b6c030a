"""GUI-G1's weight of a prompt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, regularizers, weights
from rl_jax.pieces.roles import CreditContext, LossContext

KEY = jax.random.key(0)


def test_weights_are_the_given_numbers(toy):
  """Row values on every token, linear in what was given."""
  traj = toy.trajectories(np.ones((2, 3)), group_size=1)
  given = jnp.array([0.5, 2.0])
  for factor in (1.0, 3.0):
    traj = traj.replace(extras={'difficulty_B': factor * given})
    weight = weights.DifficultyWeight()(LossContext({}, traj, KEY)).value
    np.testing.assert_allclose(
      weight, factor * np.array([[0.5] * 3, [2.0] * 3])
    )


def test_advantage_of_the_paper(toy):
  """Hit + IoU + box rewards 1.2, 0, 1.3, .1: mean .65, no std."""
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)
  adv = credit.GroupCenter()(
    CreditContext(jnp.array([1.2, 0.0, 1.3, 0.1]), traj)
  ).value
  np.testing.assert_allclose(adv, [0.55, -0.65, 0.65, -0.55], rtol=1e-5)


def test_weight_one_is_dr_grpo(toy):
  """E1: the whole method with w = 1 against Dr. GRPO of the same length."""
  gui, dr = toy.get_method('gui_g1'), toy.get_method('dr_grpo')
  traj, stats = toy.batch(gui)
  traj = traj.replace(extras={'difficulty_B': jnp.ones(8)})
  loss = toy.run(gui.as_arrays(), traj, stats, {}, KEY)['loss'] * 64
  expected = toy.run(dr.as_arrays(), traj, stats, {}, KEY)['loss'] * 1024
  np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_the_kl_is_weighted_too(toy):
  """loss = w (policy + beta k3): three times the weight, three times all."""
  gui = toy.get_method('gui_g1')
  kl = regularizers.KLPenalty(coef=0.5)
  gui = gui.replace(losses=(*gui.losses, kl))
  traj, stats = toy.batch(gui)
  alone = gui.replace(weights=())
  expected = toy.run(alone.as_arrays(), traj, stats, {}, KEY)['loss']
  traj = traj.replace(extras={'difficulty_B': 3 * jnp.ones(8)})
  loss = toy.run(gui.as_arrays(), traj, stats, {}, KEY)['loss']
  np.testing.assert_allclose(loss, 3 * expected, rtol=1e-5)


def test_a_missing_key_is_named(toy):
  """Nothing is guessed."""
  traj = toy.trajectories(np.ones((1, 1)), group_size=1)
  with pytest.raises(ValueError, match='difficulty_B'):
    weights.DifficultyWeight()(LossContext({}, traj, KEY))
