"""SPO's tree: who writes, who takes over, and what is trained."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.wrappers.segment_tree import SegmentTree
from rl_jax.types import FORCED, PAD, POLICY

N, G, T, SEGMENT = 2, 8, 7, 2
TREE = SegmentTree(branches=(2, 2), segment_tokens=SEGMENT, threshold=1.0)


@functools.lru_cache
def generate(tiny, tokens):
  """Jitted sampling of the tiny model."""
  function = functools.partial(
    decoding.generate,
    cfg=tiny.CFG,
    sampling=decoding.SamplingConfig(eos_ids=(1,)),
    max_new_tokens=tokens,
  )
  key = jax.random.key(5)
  jitted, params = jax.jit(function), tiny.params()
  return lambda traj: jitted(params, traj=traj, key=key)


class Eagerly:
  """The arguments that the collector gives to the piece."""

  def __init__(self, tiny):
    self.tiny = tiny

  def run_rows(self, function, *arrays):
    """Without a mesh."""
    return function(*arrays)

  def write(self, traj, new_tokens):
    """A few tokens more."""
    return generate(self.tiny, new_tokens)(traj)


@pytest.fixture(scope='module')
def grown(tiny):
  """Whole responses of two trees, and rows without a tree."""
  start = decoding.start_trajectories(
    np.array([[3, 4], [0, 5]]),
    np.array([[1, 1], [0, 1]]),
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )
  out = generate(tiny, T)
  return out(TREE.begin(start, Eagerly(tiny))), out(start)


@pytest.mark.slow
def test_nodes_share_their_tokens(grown):
  """The rows below a node are equal up to its end, and nobody else's."""
  out, _ = grown
  nodes = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]]
  np.testing.assert_array_equal(out.extras['node_BK'], nodes * N)
  ends_BK = np.asarray(out.extras['edge_end_BK'])
  assert (ends_BK <= [SEGMENT, 2 * SEGMENT]).all()
  tokens = np.asarray(out.response_BT)
  for level, size in enumerate((4, 2)):
    for first in range(0, N * G, size):
      end = ends_BK[first, level]
      rows = tokens[first : first + size, :end]
      assert (rows == rows[0]).all()
  assert len(np.unique(tokens, axis=0)) > N * 4  # leaves differ


@pytest.mark.slow
def test_one_row_has_written_each_token(grown):
  """E0: in the others it is FORCED, without a log-prob; the first row of a tree
  is what it would be by itself.
  """
  out, free = grown
  kind = np.asarray(out.kind_BT)
  sample = np.arange(N * G) % G
  end_BK = np.asarray(out.extras['edge_end_BK'])
  position = np.arange(T)[None]
  level = (position >= end_BK[:, :1]).astype(int) + (position >= end_BK[:, 1:])
  size = np.array([4, 2, 1])[level]
  own = sample[:, None] % size == 0
  written = position < np.asarray(out.length_B)[:, None]
  np.testing.assert_array_equal(
    kind, np.where(written, np.where(own, POLICY, FORCED), PAD)
  )
  assert (out.logp_behaviour_BT[kind != POLICY] == 0).all()
  np.testing.assert_array_equal(out.mask_BT, kind == POLICY)
  for name in ('response_BT', 'logp_behaviour_BT', 'length_B'):
    np.testing.assert_array_equal(
      getattr(out, name)[::G], getattr(free, name)[::G]
    )


def test_segments_without_an_advantage_are_not_trained(toy):
  """Rewards 1, 0, 1, 1 of two nodes: only the tokens of the second node's
  leaves have none; and no token with a probability of at least .9."""
  logp = np.log(np.array([[0.5, 0.95, 0.5]] * 4))
  kind = np.ones((4, 3), int)
  kind[[1, 3], 0] = FORCED
  traj = toy.trajectories(
    kind == POLICY,
    group_size=4,
    kind_BT=kind,
    logp_behaviour_BT=logp * (kind == POLICY),
    reward_B=np.array([1.0, 0, 1, 1]),
    extras={
      'node_BK': jnp.array([[0], [0], [1], [1]]),
      'edge_end_BK': jnp.ones((4, 1), jnp.int32),
    },
  )
  found = SegmentTree(branches=(2,))._trained(traj)
  np.testing.assert_array_equal(
    found.mask_BT, [[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0]]
  )


def tree_of_two(toy, valid, reward):
  """Two nodes of two leaves; token 0 is the node's, 1 and 2 are the leaf's."""
  kind = np.full((4, 3), POLICY)
  kind[[1, 3], 0] = FORCED
  logp = np.where(kind == POLICY, -np.arange(1.0, 13).reshape(4, 3), 0.0)
  return toy.trajectories(
    kind == POLICY,
    group_size=4,
    kind_BT=kind,
    logp_behaviour_BT=logp,
    reward_B=np.asarray(reward),
    valid_B=np.asarray(valid),
    extras={
      'node_BK': jnp.array([[0], [0], [1], [1]]),
      'edge_end_BK': jnp.ones((4, 1), jnp.int32),
    },
  )


def extended(traj):
  sampler = types.SimpleNamespace(run=lambda function, *xs: function(*xs))
  return SegmentTree(branches=(2,)).extend(traj, None, sampler)[0]


def test_the_first_valid_row_trains_a_segment(toy):
  """Row 0 failed: the first node's token, advantage 2/3, is row 1's, with the
  log-prob that row 0 drew it with. Row 3 has nothing to take over."""
  traj = tree_of_two(toy, [0.0, 1, 1, 0], [0.0, 1, 0, 0])
  found = extended(traj)
  assert found.kind_BT[:, 0].tolist() == [FORCED, POLICY, POLICY, FORCED]
  assert found.logp_behaviour_BT[:, 0].tolist() == [0, -1, -7, 0]
  assert found.mask_BT[:, 0].tolist() == [0, 1, 1, 0]
  for name in ('kind_BT', 'logp_behaviour_BT'):
    np.testing.assert_array_equal(
      getattr(found, name)[:, 1:], getattr(traj, name)[:, 1:]
    )


@pytest.mark.parametrize('valid', [[1.0, 0, 1, 1], [0.0, 0, 1, 0]])
def test_other_segments_stay_where_they_are(toy, valid):
  """The cases are that the first row is valid, and that none is."""
  traj = tree_of_two(toy, valid, [0.0, 1, 0, 1])
  found = SegmentTree(branches=(2,))._handed_on(traj)
  for name in ('kind_BT', 'logp_behaviour_BT', 'mask_BT'):
    np.testing.assert_array_equal(getattr(found, name), getattr(traj, name))


def test_groups_are_checked():
  rollout = types.SimpleNamespace(group_size=6)
  with pytest.raises(ValueError, match='4 nodes, which must divide rollout'):
    SegmentTree().check(CheckContext(rollout=rollout))
  with pytest.raises(ValueError, match='SegmentTree.branches'):
    SegmentTree(branches=(2, 0))
