"""Names of reward components, with and without their function's."""

import numpy as np
import pytest

from rl_jax.pieces import credit, row_inputs, selection
from rl_jax.pieces.ops.reward_components import called, component
from rl_jax.pieces.roles import CreditContext


def test_names():
  """The whole name first; the end of one name; none where two end so."""
  names = ['format', 'f/format', 'f/correct', 'f/deep/part']
  assert called('format', names) == 'format'
  assert called('correct', names) == 'f/correct'
  assert called('part', names) == 'f/deep/part'
  assert called('f/correct', names) == 'f/correct'
  assert called('orrect', names) is None
  assert called('correct', [*names, 'g/correct']) is None


def rows(toy, **rewards):
  """One group of two rows."""
  rewards = {k: np.asarray(x, np.float32) for k, x in rewards.items()}
  return toy.trajectories(
    np.ones((2, 1)),
    group_size=2,
    rewards=rewards,
    logp_ref_BT=np.zeros((2, 1)),
  )


def test_all_who_read_components_find_them(toy):
  """E0: filters of groups, multipliers, and inputs of rows."""
  plain = rows(toy, outcome=[0, 0], format=[1, 0])
  traj = rows(toy, outcome=[0, 0], **{'f/format': [1, 0]})
  assert component('format', traj).tolist() == [1.0, 0.0]
  assert row_inputs.read(traj, 'format_B').tolist() == [1.0, 0.0]
  assert row_inputs.read(traj, 'format_NM').tolist() == [[0.5]]
  assert selection.ZeroVariance(component='format')(
    CreditContext(traj.reward_B, traj)
  ).value.tolist() == [1.0]
  assert selection.AccuracyBand(component='format')(
    CreditContext(traj.reward_B, traj)
  ).value.tolist() == [1.0]
  piece = credit.Lagrangian()
  found, _ = piece(CreditContext(plain.reward_B, traj, piece.init(1)))
  expected, _ = piece(CreditContext(plain.reward_B, plain, piece.init(1)))
  np.testing.assert_array_equal(found, expected)


def test_unknown_names_are_errors_with_all_names(toy):
  traj = rows(toy, outcome=[0, 0])
  for piece in (selection.ZeroVariance, selection.AccuracyBand):
    with pytest.raises(ValueError, match="called 'format', .*'outcome'"):
      piece(component='format')(CreditContext(traj.reward_B, traj))
