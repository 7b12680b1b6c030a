"""Goals of chosen and rejected responses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.regularizers import ContrastiveGoal
from rl_jax.pieces.roles import LossContext
from rl_jax.types import Edges


def evaluate(toy, hidden, mask, weight=1.0, **fields):
  """One pair, whose first row wins."""
  zero = np.zeros((1, 1), np.int32)
  edges = Edges(
    win_NE=zero,
    lose_NE=zero + 1,
    weight_NE=np.full((1, 1), weight, np.float32),
    margin_NE=np.zeros((1, 1), np.float32),
  )
  traj = toy.trajectories(mask, group_size=2, edges=edges)
  piece = ContrastiveGoal(**fields)

  def loss(h):
    return piece(LossContext({'hidden': h}, traj, jax.random.key(0)))[:2]

  (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(
    jnp.asarray(hidden, jnp.float32)
  )
  return float(value), metrics, gradient


def constant(mask):
  """cos 1 within the chosen row, and 0.1 to the rejected one."""
  rows = np.array([[1.0, 0.0], [0.1, np.sqrt(0.99)]])
  return rows[:, None] * np.ones(mask.shape)[..., None]


def test_by_hand(toy):
  """0.5 (-log sigmoid(1) - log(1 - sigmoid(0.1))); -log 0.731059 = 0.313262."""
  mask = np.array([[1, 1, 1], [1, 1, 0]])
  value, metrics, _ = evaluate(toy, constant(mask), mask)
  assert value == pytest.approx(0.5 * (0.313262 + 0.744397), abs=5e-6)
  assert metrics['preference/goal_chosen'] == pytest.approx(0.731059, abs=1e-6)


def test_lengths_of_states_do_not_count(toy):
  """E1: only directions; and states that are not trained are never drawn."""
  rng = np.random.default_rng(0)
  mask = np.array([[1, 0, 1, 1], [0, 1, 1, 0]])
  hidden = rng.normal(size=(2, 4, 3))
  value, *_ = evaluate(toy, hidden, mask)
  wild = np.where(mask[..., None] > 0, 7.0 * hidden, 1e3)
  assert evaluate(toy, wild, mask)[0] == pytest.approx(value, rel=1e-5)
  assert evaluate(toy, hidden, mask, samples=3)[0] != value


def test_without_a_pair_there_is_no_loss(toy):
  """And a finite gradient, of states that are 0, too."""
  mask = np.ones((2, 3))
  value, _, gradient = evaluate(toy, 0 * constant(mask), mask, weight=0.0)
  assert value == 0.0 and not np.asarray(gradient).any()
