"""MCTS-DPO's rollout: rows are the children of nodes of a search tree."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.wrappers.tree_search import TreeSearch
from rl_jax.types import FORCED, PAD, POLICY

T, G = 6, 2


class Policy:
  """Continues rows by fixed tokens: sample g of serial s writes 10 s + g + 1.

  The reward of a row is that of its second step: 1 if it holds a `right` token.
  """

  def __init__(self, right):
    self.right, self.next_serial, self.asked = right, 100, []

  def run(self, function, *arrays):
    """Eagerly."""
    return function(*arrays)

  def grow(self, traj, done):
    """All rows to the end."""
    self.next_serial += traj.num_prompts
    self.asked.append(np.asarray(traj.length_B))
    traj = written(traj)
    reward_B = rewards(traj, self.right)
    traj = traj.replace(
      reward_B=jnp.asarray(reward_B), rewards={'outcome': jnp.asarray(reward_B)}
    )
    found = types.SimpleNamespace(reward_NG=reward_B.reshape(-1, G).copy())
    return traj, found


def written(traj):
  """Every unfinished row with its own tokens up to T."""
  kind = np.asarray(traj.kind_BT)
  own = (kind == PAD) & ~np.asarray(traj.finished_B)[:, None]
  ids = np.asarray(traj.row_id_B2)
  token = 10 * (ids[:, 0] % 100) + ids[:, 1] + 1
  return traj.replace(
    response_BT=jnp.where(own, token[:, None], traj.response_BT),
    kind_BT=jnp.where(own, POLICY, kind),
    length_B=jnp.where(own.any(1), T, traj.length_B),
    mask_BT=jnp.asarray(own, jnp.float32),
    logp_behaviour_BT=jnp.where(own, -0.5, 0.0),
  )


def rewards(traj, right):
  """1 where the row holds the token `right`."""
  return (np.asarray(traj.response_BT) == right).any(1).astype(np.float32)


def grown(toy, right, piece, prompts=1):
  """(rows, rounds, the policy) of a search from the prompt."""
  zeros = np.zeros((prompts * G, T))
  start = toy.trajectories(
    zeros,
    group_size=G,
    response_BT=zeros.astype(int),
    finished_B=np.zeros(prompts * G, bool),
  ).replace(logp_old_BT=None, reward_B=None)
  first = written(start)
  reward_B = rewards(first, right)
  first = first.replace(
    reward_B=jnp.asarray(reward_B), rewards={'outcome': jnp.asarray(reward_B)}
  )
  done = types.SimpleNamespace(reward_NG=reward_B.reshape(-1, G))
  policy = Policy(right)
  traj, rounds = piece.extend(first, done, policy)
  return traj, rounds, policy


PIECE = TreeSearch(
  expansions=2, step_tokens=2, iterations=1, moves=2, depth=3, exploration=0.0
)


def test_rows_are_steps_behind_their_node(toy):
  """The prompt's children write 1 and 2; 2 is right, so its children, of serial
  100, come next: [2, 2] is FORCED there, and one step is in the mask."""
  traj, rounds, policy = grown(toy, 2, PIECE)
  assert traj.group_size == 6 and len(rounds) == 2
  np.testing.assert_array_equal(policy.asked, [[2, 2], [4, 4]])
  np.testing.assert_array_equal(
    traj.response_BT,
    [
      [1] * 6,
      [2] * 6,
      [2, 2, 1, 1, 1, 1],
      [2, 2, 2, 2, 2, 2],
      # Both are right: the first of equal ones continues.
      [2, 2, 1, 1, 11, 11],
      [2, 2, 1, 1, 12, 12],
    ],
  )
  np.testing.assert_array_equal(
    traj.mask_BT,
    [[1, 1, 0, 0, 0, 0]] * 2
    + [[0, 0, 1, 1, 0, 0]] * 2
    + [[0, 0, 0, 0, 1, 1]] * 2,
  )
  np.testing.assert_array_equal(traj.kind_BT[2], [FORCED] * 2 + [POLICY] * 4)
  np.testing.assert_array_equal(traj.extras['forced_B'], [0, 0, 1, 1, 1, 1])
  # Only the root's pair: below it all are right, and make none.
  np.testing.assert_array_equal(
    traj.extras['search_pair_B'], [-1, 1, 0, 0, 0, 0]
  )
  assert traj.valid_B.all()


def test_confidence_is_that_of_visits(toy):
  """Without exploration the worse child is never visited."""
  traj, _, _ = grown(toy, 2, PIECE)
  assert traj.extras['confidence_B'][1] == 1.0


def test_equal_steps_are_one_child(toy):
  """A policy that writes one thing has one child, and no pair."""
  same = Policy(1)
  zeros = np.zeros((G, T))
  first = toy.trajectories(
    np.ones((G, T)),
    group_size=G,
    response_BT=zeros.astype(int) + 1,
    rewards={'outcome': np.array([1.0, 0.0])},
  ).replace(logp_old_BT=None)
  done = types.SimpleNamespace(reward_NG=np.array([[1.0, 0.0]]))
  traj, _ = PIECE.extend(first, done, same)
  assert not np.asarray(traj.extras['search_pair_B'])[:G].any()


def test_ended_trees_draw_nothing(toy):
  """A step of all tokens ends a response: no node wants children, and rows that
  were not drawn are invalid."""
  piece = PIECE.replace(step_tokens=T)
  traj, rounds, policy = grown(toy, 2, piece)
  assert not rounds and not policy.asked
  np.testing.assert_array_equal(traj.valid_B, [1, 1, 0, 0, 0, 0])
  np.testing.assert_array_equal(traj.weight_B, traj.valid_B)
  np.testing.assert_array_equal(traj.extras['search_pair_B'][:2], [-1, 1])


def test_prompts_are_searched_on_their_own(toy):
  """E0: as by itself, but for the serial of the third round, here 102."""
  one, _, _ = grown(toy, 2, PIECE)
  two, rounds, _ = grown(toy, 2, PIECE, prompts=2)
  np.testing.assert_array_equal(two.mask_BT[:6], one.mask_BT)
  same = two.response_BT[:6] == one.response_BT
  np.testing.assert_array_equal(same.all(1), [1, 1, 1, 1, 0, 0])
  assert same[:, :4].all()
  # The second writes 11 and 12 at first: none is right, so there is no pair.
  np.testing.assert_array_equal(two.extras['search_pair_B'][6:8], [0, 0])
  assert len(rounds) == 2 and np.isfinite(rounds[0].reward_NG).all()


def test_settings_are_checked():
  with pytest.raises(ValueError, match='group_size >= 2'):
    TreeSearch().check(
      CheckContext(rollout=types.SimpleNamespace(group_size=1))
    )
  with pytest.raises(ValueError, match='TreeSearch.depth = 0'):
    TreeSearch(depth=0)
