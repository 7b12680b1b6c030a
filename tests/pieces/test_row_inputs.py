"""Pieces read rows that come from outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, losses, row_inputs, shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import ENVIRONMENT, FORCED, PAD, POLICY


def test_a_missing_key_is_named_and_explained(toy):
  """The error says what to fill in, and under which component name."""
  traj = toy.trajectories(np.ones((2, 1)), group_size=2)
  with pytest.raises(ValueError, match="'cluster_id_B'.*final answer") as error:
    row_inputs.read(traj, 'cluster_id_B')
  assert "component 'cluster_id'" in str(error.value)
  with pytest.raises(ValueError, match="extras\\['hidden'\\] is missing"):
    row_inputs.read(traj, 'hidden')


def test_a_reward_component_serves_a_row_value(toy):
  """extras win over the component of the same name."""
  component = {'cluster_id': np.array([4.0, 5.0])}
  traj = toy.trajectories(np.ones((2, 1)), group_size=2, rewards=component)
  np.testing.assert_array_equal(row_inputs.read(traj, 'cluster_id_B'), [4, 5])
  traj = traj.replace(extras={'cluster_id_B': np.array([1, 2])})
  np.testing.assert_array_equal(row_inputs.read(traj, 'cluster_id_B'), [1, 2])


def test_right_rows_are_those_of_the_outcome(toy):
  """A bonus in the reward does not make a row right; invalid rows are not."""
  traj = toy.trajectories(
    np.ones((3, 1)),
    group_size=3,
    reward_B=np.array([0.6, 1.0, 1.0]),
    valid_B=np.array([1.0, 1, 0]),
  )
  right_B = row_inputs.right_B(traj, 0.5)
  np.testing.assert_array_equal(right_B, [True, True, False])
  outcome = {'outcome': np.array([0.0, 1, 1]), 'format': np.array([0.6, 0, 0])}
  right_B = row_inputs.right_B(traj.replace(rewards=outcome), 0.5)
  np.testing.assert_array_equal(right_B, [False, True, False])


def test_tokens_of_the_policy_by_hand(toy):
  """The environment said the third and the fourth of five tokens."""
  kind = np.array([[POLICY, FORCED, ENVIRONMENT, ENVIRONMENT, POLICY, PAD]])
  traj = toy.trajectories(
    kind == POLICY, group_size=1, kind_BT=kind, length_B=np.array([5])
  )
  for end, expected in ((5, 3), (4, 2), (3, 2), (2, 2), (0, 0), (-1, -1)):
    found = row_inputs.policy_tokens_B(traj, jnp.array([end]))
    np.testing.assert_array_equal(found, [expected])


def history(ctx):
  """HistoryLength, where two tokens have been enough before."""
  state = {'shortest': jnp.array([2.0])}
  return shaping.HistoryLength()(ctx._replace(state=state))


def preference(ctx):
  """The weights of LengthPreference with lambda = 2."""
  return losses.LengthPreference()._weights(ctx.traj, jnp.float32(2.0))


# Pieces that compare lengths: rewards and rows -> what they make of them.
BY_LENGTH = {
  'overlong': shaping.OverlongPenalty(max_tokens=4.0, buffer_tokens=3.0),
  'history': history,
  'reference': shaping.ReferenceSigmoid(references=False, free_tokens=1.0),
  'long_wrong': credit.LongWrongScale(growth=1.0),
  'long_right': credit.LengthAdvantageScale(),
  'first_call': credit.FirstCallBias(limit=9.0),
  'preference': preference,
}


@pytest.mark.parametrize('name', BY_LENGTH)
def test_lengths_are_without_what_the_environment_said(toy, name):
  """E0: the rows as if tools had answered nothing, whatever they answered.

  The policy writes 2, 3, 1 and 4 tokens, a tool answers after the first of
  these; the first call is the last token.
  """
  written = np.array([2, 3, 1, 4])

  def rows(said):
    place, end = np.arange(6)[None], (written + said)[:, None]
    kind = np.where(place < end, POLICY, PAD)
    kind[(place > 0) & (place <= said[:, None])] = ENVIRONMENT
    reward = np.array([1.0, 1.0, 0.0, 0.0])
    return toy.trajectories(
      kind == POLICY,
      group_size=4,
      kind_BT=kind,
      length_B=written + said,
      reward_B=reward,
      extras={'first_call_B': (written + said - 1) * 1.0},
    )

  piece, given = BY_LENGTH[name], jnp.array([1.0, 0.5, -0.5, -1.0])
  expected = piece(CreditContext(given, rows(np.zeros(4, int))))
  for said in ([3, 1, 4, 0], [0, 1, 4, 0]):
    found = piece(CreditContext(given, rows(np.array(said))))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
