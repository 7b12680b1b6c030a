"""CFR over latent strategies."""

import numpy as np
import pytest

from rl_jax.tasks import OpenSpiel
from rl_jax.tasks.environments import information_states, regret

PURE = [{'p': 1.0}, {'b': 1.0}]


def test_regret_matching_by_hand():
  """(1, -2, 3) -> (1/4, 0, 3/4); without positive regrets uniform."""
  np.testing.assert_allclose(
    regret.matched(np.array([1.0, -2.0, 3.0])), [0.25, 0.0, 0.75]
  )
  np.testing.assert_allclose(regret.matched(np.array([-1.0, 0.0])), 0.5)


def test_a_latent_for_each_move_is_cfr_of_openspiel():
  """Average strategies of five iterations, in all twelve states."""
  pyspiel = pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task = OpenSpiel()
  solver = pyspiel.CFRSolver(task.load())
  for _ in range(5):
    solver.evaluate_and_update_policy()
  expected = solver.average_policy()
  found = regret.average_strategies(task, [PURE, PURE], 5)
  assert len(found) == 12
  for (_, key), strategy_Z in found.items():
    np.testing.assert_allclose(
      strategy_Z, [p for _, p in expected.get_state_policy(key)], atol=1e-9
    )


def test_mixed_latents_and_their_order():
  """Equal latents stay uniform; order and copies of latents change no move.

  A half-pass latent between pure ones is not a new move: moves are near the
  equilibrium all the same.
  """
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task, mixed = OpenSpiel(), {'p': 0.5, 'b': 0.5}
  same = regret.average_strategies(task, [[mixed, mixed]] * 2, 3)
  assert all((strategy_Z == 0.5).all() for strategy_Z in same.values())
  one = regret.average_strategies(task, [[*PURE, mixed]] * 2, 40)
  other = regret.average_strategies(task, [[mixed, *PURE]] * 2, 40)
  for key, strategy_Z in one.items():
    np.testing.assert_allclose(strategy_Z, np.roll(other[key], -1), atol=1e-9)
  table = {
    key: {'p': z[0] + z[2] / 2, 'b': z[1] + z[2] / 2} for key, z in one.items()
  }
  assert information_states.nash_conv(task, table) < 0.15
