"""Candidates for a step: their states, their ends, their values."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from experiments.reports import influence_run
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.row_inputs import NO_CUT
from rl_jax.rollouts.wrappers.candidate_steps import CandidateSteps
from rl_jax.types import FORCED, PAD, POLICY
from rl_jax.worlds import Arithmetic

G, T = 4, 6
PIECE = CandidateSteps(samples=1, min_spread=0.1)
# Steps of two, one and three tokens; the second response has one step.
STARTS = np.array([[1, 0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0]], np.float32)


def written(toy, serials):
  """Sample G of each state has written this; the other rows wait, empty."""
  N = len(serials)
  length = np.zeros((N, G), int)
  length[:, 0] = T
  mask = np.arange(T) < length.reshape(-1, 1)
  row_id = np.stack([np.repeat(serials, G), np.tile([G, 1, 2, 3], N)], 1)
  return toy.trajectories(
    mask,
    group_size=G,
    response_BT=mask * np.tile(np.arange(1, T + 1), (N * G, 1)),
    row_id_B2=row_id.astype(np.int32),
    logp_behaviour_BT=-1.0 * mask,
  )


def test_groups_share_whole_steps(toy):
  """Every number of steps but all of them, equal in the rows of a group, and
  the same for a group without its neighbours."""
  serials = np.arange(60)
  start_BT = np.repeat(STARTS[serials % 2], G, axis=0)
  behind_prefix = jax.jit(PIECE.behind_prefix)
  found = behind_prefix(
    written(toy, serials), jnp.asarray(start_BT), jax.random.key(0)
  )
  prefix_NG = np.asarray(found.extras['prefix_B']).reshape(-1, G)
  assert (prefix_NG == prefix_NG[:, :1]).all()
  counts = np.unique(prefix_NG[::2, 0], return_counts=True)
  assert counts[0].tolist() == [0, 2, 3] and min(counts[1]) >= 5
  assert not prefix_NG[1::2].any()  # of one step none is taken
  inside = np.arange(T) < prefix_NG.reshape(-1, 1)
  np.testing.assert_array_equal(found.response_BT, inside * np.arange(1, T + 1))
  np.testing.assert_array_equal(found.kind_BT, np.where(inside, FORCED, PAD))
  np.testing.assert_array_equal(found.length_B, prefix_NG.reshape(-1))
  assert not found.finished_B.any() and not found.mask_BT.any()
  assert not found.logp_behaviour_BT.any()
  assert found.row_id_B2[:, 1].tolist() == [0, 1, 2, 3] * 60
  group = slice(8 * G, 9 * G)
  alone = behind_prefix(
    written(toy, serials[8:9]), jnp.asarray(start_BT[group]), jax.random.key(0)
  )
  np.testing.assert_array_equal(found.response_BT[group], alone.response_BT)


def test_the_first_row_writes_as_another_sample(toy):
  """Or it would write the same response again."""
  rows = toy.trajectories(np.zeros((G, T)), group_size=G)
  rows = rows.replace(finished_B=jnp.zeros(G, bool))
  found = PIECE.with_writer(rows)
  assert found.row_id_B2[:, 1].tolist() == [G, 1, 2, 3]
  assert found.finished_B.tolist() == [False, True, True, True]


def candidates(toy):
  """One state of two tokens. Steps 5 6, again 5 6, 7 and a step to the end."""
  response = np.array(
    [
      [1, 2, 5, 6, 9, 9],
      [1, 2, 5, 6, 8, 0],
      [1, 2, 7, 9, 9, 0],
      [1, 2, 5, 6, 0, 0],
    ]
  )
  mask = (response > 0) & (np.arange(T) >= 2)
  starts = np.array(
    [
      [1, 0, 1, 0, 1, 0],
      [1, 0, 1, 0, 1, 0],
      [1, 0, 1, 1, 0, 0],
      [1, 0, 1, 0, 1, 0],  # after the end: no step
    ]
  )
  reward = np.array([1.0, 0.0, 0.0, 1.0])
  return toy.trajectories(
    mask,
    group_size=G,
    response_BT=response,
    kind_BT=np.where(mask, POLICY, PAD),
    length_B=np.array([6, 5, 5, 4], np.int32),
    reward_B=reward,
    extras={
      'segment_start_BT': starts,
      'prefix_B': np.full(G, 2, np.int32),
    },
  )


class Rewarded:
  """One continuation of each row, with these rewards."""

  next_serial = 0

  def __init__(self, rewards):
    self.rewards = rewards

  def run(self, function, *arrays):
    """Compiled."""
    return jax.jit(function)(*arrays)

  def go_on(self, traj, done):
    """The rewards."""
    del traj, done
    return types.SimpleNamespace(
      reward_NG=np.asarray([self.rewards], np.float32)
    )


def extended(toy, rewards, min_spread=0.1):
  piece = CandidateSteps(samples=1, min_spread=min_spread)
  done = types.SimpleNamespace(reward_NG=np.array([[1.0, 0.0, 0.0, 1.0]]))
  return piece.extend(candidates(toy), done, Rewarded(rewards))[0]


def test_steps_end_where_the_next_begins(toy):
  assert PIECE._last_tokens(candidates(toy)).tolist() == [3, 3, 2, NO_CUT]


def test_values_by_hand(toy):
  """Values of the own reward and one continuation: rows 0 and 1 have (1 + 1) /
  2 and (0 + 1) / 2, row 2 has (0 + 1) / 2. Row 3 ends with its step: its reward
  is the value. Rows 0, 1 and 3 are one candidate: (1 + .5 + 1) / 3.
  """
  found = extended(toy, [1, 1, 1, 0])
  np.testing.assert_allclose(
    found.extras['candidate_value_B'], np.array([5, 5, 3, 5]) / 6, rtol=1e-6
  )
  np.testing.assert_array_equal(found.extras['candidate_B'], [1, 0, 1, 0])
  np.testing.assert_array_equal(found.extras['candidate_ends_B'], [0, 0, 0, 1])
  np.testing.assert_array_equal(found.weight_B, [1, 0, 1, 0])
  np.testing.assert_array_equal(found.valid_B, [1, 1, 1, 1])
  step = np.array([[0, 0, 1, 1, 0, 0]] * 2 + [[0, 0, 1, 0, 0, 0]])
  np.testing.assert_array_equal(found.mask_BT[:3], step)


def test_states_without_a_spread_weigh_nothing(toy):
  """Values 5 / 6 and 1 / 2: .33 apart."""
  assert extended(toy, [1, 1, 1, 0], min_spread=0.33).weight_B.any()
  assert not extended(toy, [1, 1, 1, 0], min_spread=0.34).weight_B.any()


def test_failed_verifications_are_left_out(toy):
  """Row 2 keeps its own reward: 0."""
  found = extended(toy, [1, 1, np.nan, 0])
  assert found.extras['candidate_value_B'][2] == 0


def test_a_task_without_steps_is_refused():
  with pytest.raises(ValueError, match='CandidateSteps needs .* Arithmetic'):
    CandidateSteps().check(CheckContext(task=Arithmetic()))
  other = types.SimpleNamespace(task=0, row_inputs=lambda traj: {'gain_BT': 0})
  with pytest.raises(ValueError, match="of int gives no 'segment_start_BT'"):
    CandidateSteps().begin(None, other)


@pytest.mark.slow
def test_it_acts_on_the_chain():
  """Half of the states of an untrained model are after a step or more."""
  sets = [
    'task.num_train=64',
    'rollout.num_prompts=8',
    'rollout.group_size=4',
    'rollout.max_response_tokens=16',
    'update.minibatch_prompts=8',
    'model.config.num_layers=1',
    'model.config.width=16',
    'model.config.mlp_size=32',
  ]
  config = configuration.build('chain', 'direct_advantage@candidates', sets)
  found = influence_run.measure(
    influence_run.configured(config, 'direct_advantage', 2)
  )
  assert found['rows_changed'] > 0.3, found
