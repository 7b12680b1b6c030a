"""Values of actions from episodes after them, and the best of n draws."""

import numpy as np
import pytest

from experiments.papers.preferences import step_values
from experiments.pipelines import walks
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import KeyDoor


@pytest.fixture(scope='module')
def game():
  task = KeyDoor()
  example = task.example('train', 0)
  layout = task.layout(seed_of(example))
  return task, example, layout.solution(), walks.walks(layout)


def test_best_of_n_by_hand():
  """Two draws of (.5, .3, .2) with values 0, 2, 1: .25, 1 - .7^2, .7^2 - .5^2.

  One draw, or equal values, are the policy; a number of the state changes
  nothing.
  """
  policy_SA = np.array([[0.5, 0.3, 0.2]])
  value_SA = np.array([[0.0, 2.0, 1.0]])
  found_SA = walks.best_of_n(policy_SA, value_SA, 2)
  np.testing.assert_allclose(found_SA, [[0.25, 0.51, 0.24]])
  np.testing.assert_allclose(
    walks.best_of_n(policy_SA, value_SA - 7.0, 2), found_SA
  )
  np.testing.assert_allclose(walks.best_of_n(policy_SA, value_SA, 1), policy_SA)
  same_SA = np.zeros((1, 3))
  np.testing.assert_allclose(walks.best_of_n(policy_SA, same_SA, 5), policy_SA)


def test_success_of_random_actions(game):
  """The result is that of the task's own value iteration."""
  task, example, _, grid = game
  uniform_SA = np.full(grid.next_SA.shape, 1 / 6)
  found = walks.success(grid, uniform_SA, 12)
  assert found == pytest.approx(task.random_return(example, 12))


def test_values_and_pairs_behind_a_shortest_way(game):
  """The first of L actions is worth gamma^(L-1), a waiting one gamma^L."""
  _, _, solution, grid = game
  policy_SA = np.full(grid.next_SA.shape, 1 / 6)
  state = 0
  for action in solution:
    policy_SA[state] = np.eye(6)[action]
    state = grid.next_SA[state, action]
  assert grid.goal_S[state] == 1.0
  assert walks.success(grid, policy_SA, len(solution)) == pytest.approx(1.0)
  assert walks.success(grid, policy_SA, len(solution) - 1) == 0.0
  value_SA = walks.sampled_values(
    grid,
    policy_SA,
    gamma=0.5,
    turns=len(solution) + 1,
    samples=2,
    rng=np.random.default_rng(0),
  )
  best = 0.5 ** (len(solution) - 1)
  assert value_SA[0, solution[0]] == pytest.approx(best)
  waits = grid.next_SA[0] == 0
  assert waits.any()
  np.testing.assert_allclose(value_SA[0, waits], best / 2)
  rows = step_values.pairs(grid, value_SA)
  letters = {row['chosen'] for row in rows if row['prompt'] == grid.prompts[0]}
  assert step_values.LETTERS[solution[0]] in letters
  goals = {p for p, g in zip(grid.prompts, grid.goal_S, strict=True) if g}
  assert not goals & {row['prompt'] for row in rows}
