"""Contrasts of DisCO by hand: one right row and two wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

SCORE = np.array([[-1.0], [-2.0], [-3.0]])  # one token: the mean logp
REWARD = np.array([[1.0], [0.0], [0.0]])


def evaluate(toy, loss, logp=SCORE, reward=REWARD, group_size=3, **fields):
  """(loss, -gradient in logp)."""
  traj = toy.trajectories(
    fields.pop('mask_BT', np.ones(logp.shape)),
    group_size=group_size,
    advantages_BT=reward,
    **{'logp_old_BT': logp, **fields},
  )

  def value(x):
    return loss(LossContext({'logp': x}, traj, jax.random.key(0))).value

  total, gradient = jax.value_and_grad(value)(jnp.asarray(logp, jnp.float32))
  return total, -gradient


@pytest.mark.parametrize(
  'tau, expected',
  # -1 minus the mean -2.5; -1 - log((e^-2 + e^-3) / 2); tau 10 is nearly mean.
  [(None, 1.5), (1.0, 1.379885), (10.0, 1.487505), (1e3, 1.499875)],
)
def test_value_by_hand(toy, tau, expected):
  """The loss is -J."""
  value, _ = evaluate(toy, losses.DisCO(tau=tau))
  np.testing.assert_allclose(-value, expected, rtol=1e-4)


def test_gradient_by_hand(toy):
  """1 on the right row; softmax(-2, -3) = (.731059, .268941) on the others."""
  _, push = evaluate(toy, losses.DisCO(tau=1.0))
  expected = [[1.0], [-0.731059], [-0.268941]]
  np.testing.assert_allclose(push, expected, rtol=1e-5)
  _, push = evaluate(toy, losses.DisCO(tau=None))
  np.testing.assert_allclose(push, [[1.0], [-0.5], [-0.5]], rtol=1e-6)


def test_ratio_score(toy):
  """Scores 1, e^.5 and 1: J of DisCO-b is 1 - (1.648721 + 1) / 2."""
  loss = losses.DisCO(tau=None, score='ratio')
  old = SCORE - np.array([[0.0], [0.5], [0.0]])
  value, push = evaluate(toy, loss, logp_old_BT=old)
  np.testing.assert_allclose(-value, -0.324361, rtol=1e-4)
  np.testing.assert_allclose(push[1, 0], -1.648721 / 2, rtol=1e-5)


def test_groups_of_one_class_count_as_zero(toy):
  """A second group, all right: no gradient, and the first one halves."""
  logp = np.concatenate([SCORE, SCORE])
  reward = np.concatenate([REWARD, np.ones((3, 1))])
  for tau in (None, 1.0):
    value, push = evaluate(toy, losses.DisCO(tau=tau), logp, reward)
    single, alone = evaluate(toy, losses.DisCO(tau=tau))
    np.testing.assert_allclose(value, single / 2, rtol=1e-6)
    np.testing.assert_allclose(push[:3], alone / 2, rtol=1e-6)
    np.testing.assert_array_equal(push[3:], 0)


def test_the_weight_of_the_right_rows_is_always_one(toy):
  """Whatever their share, unlike GRPO's sqrt(p (1 - p))."""
  for right in (1, 2):
    reward = (np.arange(3) < right)[:, None].astype(float)
    _, push = evaluate(toy, losses.DisCO(tau=1.0), reward=reward)
    np.testing.assert_allclose(push[:right].sum(), 1.0, rtol=1e-6)


def test_a_row_is_right_above_one_half(toy):
  """E0: credits .51 and .49 are separated like 1 and 0."""
  near = 0.49 + 0.02 * REWARD
  for tau in (None, 1.0):
    base = evaluate(toy, losses.DisCO(tau=tau))
    other = evaluate(toy, losses.DisCO(tau=tau), reward=near)
    jax.tree.map(np.testing.assert_array_equal, other, base)


def test_dropped_rows_have_no_gradient(toy):
  """E0: nor do they count as wrong: one wrong row is left."""
  weight = np.array([1.0, 1.0, 0.0])
  _, push = evaluate(toy, losses.DisCO(tau=1.0), weight_B=weight)
  np.testing.assert_allclose(push[:2], [[1.0], [-1.0]], rtol=1e-6)
  assert push[2, 0] == 0
