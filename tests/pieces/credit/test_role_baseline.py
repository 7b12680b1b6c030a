"""Running means of roles."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def step(toy, reward, role, state, valid=None, decay=0.95, roles=2):
  """(advantages, means) of a rollout."""
  B = len(reward)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=1,
    extras={} if role is None else {'role_B': np.asarray(role, np.float32)},
    valid_B=np.ones(B) if valid is None else np.asarray(valid),
  )
  piece = credit.RoleBaseline(decay=decay, roles=roles)
  state = piece.init(5) if state is None else state
  found, state = piece(
    CreditContext(np.asarray(reward, np.float32), traj, state)
  )
  return found, state


def test_games_one_by_one_by_hand(toy):
  """R_0 = 1, 1, -1 and R_1 = -R_0: A_0 = 1, 0.95, -1.0975, A_1 = -A_0."""
  state = None
  means = [0.05, 0.0975, 0.042625]
  games = zip([1.0, 1.0, -1.0], [1.0, 0.95, -1.0975], means, strict=True)
  for reward, expected, mean in games:
    found, state = step(toy, [reward, -reward], [0, 1], state)
    np.testing.assert_allclose(found, [expected, -expected], rtol=1e-5)
    np.testing.assert_allclose(state['mean'], [mean, -mean], rtol=1e-5)


def test_a_rollout_of_several_games_by_hand(toy):
  """decay 0.5, three rows of role 1 of mean 2: b = (1 - 1/8) 2; one invalid."""
  found, state = step(
    toy, [1, 2, 3, 9, 4], [1, 1, 1, 1, 0], None, [1, 1, 1, 0, 1], decay=0.5
  )
  np.testing.assert_allclose(found, [1, 2, 3, 9, 4])
  np.testing.assert_allclose(state['mean'], [2.0, 1.75])


def test_one_baseline_for_all_roles_by_hand(toy):
  """R = 3, 1: b = (1 - 0.95^2) 2 for all, 0.15 and 0.05 for two roles."""
  _, state = step(toy, [3, 1], [0, 1], None, roles=1)
  np.testing.assert_allclose(state['mean'], [0.195], rtol=1e-5)
  found, _ = step(toy, [3, 1], [1, 0], state, roles=1)
  np.testing.assert_allclose(found, [2.805, 0.805], rtol=1e-5)
  _, state = step(toy, [3, 1], [0, 1], None)
  np.testing.assert_allclose(state['mean'], [0.15, 0.05], rtol=1e-5)


def test_order_changes_nothing_and_decay_one_is_no_baseline(toy):
  state = {'mean': jnp.array([0.5, -1.0])}
  reward, role = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0])
  found, after = step(toy, reward, role, state)
  order = np.array([2, 0, 1])
  moved, same = step(toy, reward[order], role[order], state)
  np.testing.assert_array_equal(found[order], moved)
  np.testing.assert_allclose(after['mean'], same['mean'], rtol=1e-6)
  _, state = step(toy, reward, None, None, decay=1.0)
  np.testing.assert_array_equal(state['mean'], [0, 0])
