"""Features of responses that are alike under noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import LossContext

# The state before the last token counts.
STATES = np.zeros((2, 2, 2), np.float32)
STATES[0, 1], STATES[1, 1] = (3, 0), (0, 2)


def evaluate(toy, states, *, weight=None, **fields):
  """The value of rows of two tokens, in one group."""
  states = jnp.asarray(states)
  ones = np.ones(states.shape[:2], np.float32)
  weight = ones[:, 0] if weight is None else np.asarray(weight, np.float32)
  traj = toy.trajectories(ones, group_size=len(ones), weight_B=weight)
  piece = pref.FeatureContrast(**{'coef': 1.0, 'dropout': 0.0, **fields})
  ctx = LossContext({'hidden': states}, traj, jax.random.key(0))
  return float(piece(ctx).value)


@pytest.mark.parametrize('tau', [1.0, 0.5])
def test_by_hand(toy, tau):
  """Orthogonal rows: log(1 + exp(-1 / tau))."""
  expected = math.log1p(math.exp(-1 / tau))
  assert evaluate(toy, STATES, tau=tau) == pytest.approx(expected, rel=1e-6)


def test_coefficient_zero_changes_nothing(toy):
  """E0."""
  assert evaluate(toy, STATES, coef=0.0) == 0.0


def test_lengths_of_states_do_not_count(toy):
  """E1."""
  assert evaluate(toy, 7 * STATES) == pytest.approx(evaluate(toy, STATES))


def test_rows_of_no_weight_count_nowhere(toy):
  states = np.concatenate([STATES, 5 + STATES[:1]])
  found = evaluate(toy, states, weight=(1, 1, 0))
  assert found == pytest.approx(evaluate(toy, STATES))


def test_dropout_changes_the_views(toy):
  """Two draws of the entries: a row is no longer most like itself."""
  states = np.random.default_rng(0).normal(size=(4, 2, 64)).astype(np.float32)
  assert evaluate(toy, states, dropout=0.5) > evaluate(toy, states)
