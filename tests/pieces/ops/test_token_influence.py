"""THR and NTHR: a group of two rows and three tokens, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.ops.token_influence import influence
from rl_jax.pieces.roles import CreditContext

# Tokens a, b in the right row, a, c in the wrong one. One hidden feature.
TOKENS = np.array([[10, 11], [10, 12]])
HIDDEN = np.array([[[1.0], [2.0]], [[2.0], [1.0]]])
# p of a, b, c at both positions; the group's slots are a, b, a, c.
FIRST, SECOND = [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]
SLOTS = [0, 1, 0, 2]
PROBS = np.array([[FIRST, SECOND], [FIRST, SECOND]])[:, :, SLOTS]
# g, over (a, b, c): (.5, -.25, -.25), (0, .5, -.5) in the right row,
#                    (.5, -.25, -.25), (0, -.5, .5) in the wrong one
# M = 1 (.5, -.25, -.25) + 2 (0, .5, -.5) = (.5, .75, -1.25)
# s = (.25 - .1875 + .3125) 1 = .375, (.375 + .625) 2 = 2;
#     .375 2 = .75, (-.375 - .625) 1 = -1
INFLUENCE = [[0.375, 2.0], [0.75, -1.0]]


def rollout(toy, **fields):
  """The right row is row 0."""
  hidden = fields.pop('hidden', HIDDEN)
  return toy.trajectories(
    fields.pop('mask_BT', np.ones((2, 2))),
    group_size=2,
    response_BT=fields.pop('response_BT', TOKENS),
    reward_B=fields.pop('reward_B', np.array([1.0, 0.0])),
    extras={'hidden': hidden, 'group_probs': fields.pop('probs', PROBS)},
    **fields,
  )


def test_influence_by_hand(toy):
  """The bilinear form of the docstring, a counted once."""
  s = influence(rollout(toy), jnp.array([1.0, 0.0]))
  np.testing.assert_allclose(s, INFLUENCE, rtol=1e-6)


def test_influence_is_the_double_sum(toy):
  """E1: sum over tokens of right rows of <g, g> <h, h>, three rows of four."""
  rng = np.random.default_rng(0)
  B, T, D, V = 3, 4, 5, 6
  p = rng.dirichlet(np.ones(V), (B, T))
  tokens = rng.integers(V, size=(B, T))
  tokens[0, 1] = tokens[0, 0]  # one token twice, side by side
  hidden = rng.normal(size=(B, T, D))
  mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1.0]])
  traj = toy.trajectories(
    mask,
    group_size=B,
    response_BT=tokens,
    extras={'hidden': hidden, 'group_probs': p[:, :, tokens.ravel()]},
  )
  right = np.array([1.0, 0.0, 1.0])
  seen = np.unique(tokens[mask > 0])
  g = (np.eye(V)[tokens] - p)[:, :, seen]
  gram = np.einsum('itu,jsu,itd,jsd->itjs', g, g, hidden, hidden)
  expected = np.einsum('it,itjs->js', mask * right[:, None], gram) * mask
  np.testing.assert_allclose(
    influence(traj, jnp.asarray(right)), expected, rtol=1e-5, atol=1e-5
  )


def test_thr_by_hand(toy):
  """tau = .5 mean(.375, 2) = .59375. |s| above it: 2, .75, 1; the wrong row's
  signs are turned: factors (0, 1.1), (1 - .1, 1 + .1)."""
  piece = credit.TokenHiddenReward(direction=0.1, beta=0.5)
  actual = piece(CreditContext(jnp.array([2.0, -2.0]), rollout(toy))).value
  np.testing.assert_allclose(actual, [[0, 2.2], [-1.8, -2.2]], rtol=1e-6)


def test_thr_threshold_by_hand(toy):
  """One token everywhere, g = 1/2: M = (2 - 6) / 2, s = -h. Right row -2, 6:
  tau = .5 mean |s| = 2, which 2 does not exceed; wrong row -1.5 and -4."""
  hidden = np.array([[[2.0], [-6.0]], [[1.5], [4.0]]])
  traj = rollout(
    toy,
    response_BT=np.full((2, 2), 3),
    hidden=hidden,
    probs=np.full((2, 2, 4), 0.5),
  )
  piece = credit.TokenHiddenReward(direction=0.1, beta=0.5)
  actual = piece(CreditContext(jnp.array([2.0, -2.0]), traj)).value
  np.testing.assert_allclose(actual, [[0, 2.2], [0, -2.2]], rtol=1e-6)


def test_nthr_by_hand(toy):
  """tau = .5 1.1875: of the wrong row only s = .75 is above, and p = 1/2 takes
  everything. In a group of four with one right row a half would be left."""
  piece = credit.NegativeTokenDamping(beta=0.5)
  actual = piece(CreditContext(jnp.array([2.0, -2.0]), rollout(toy))).value
  np.testing.assert_allclose(actual, [[2, 2], [0, -2]], rtol=1e-6)


def test_nthr_damps_by_the_share_of_right_rows(toy):
  """p = 1/4: 2 |1/4 - 1/2| = 1/2. Wrong rows equal to the right one but twice
  as long in h have s = 2 tau."""
  probs = np.full((4, 1, 4), 0.5)
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=4,
    response_BT=np.full((4, 1), 3),
    reward_B=np.array([1.0, 0, 0, 0]),
    extras={
      'hidden': np.array([1.0, 2, 2, 2]).reshape(4, 1, 1),
      'group_probs': probs,
    },
  )
  actual = credit.NegativeTokenDamping()(
    CreditContext(jnp.array([3.0, -1, -1, -1]), traj)
  ).value
  np.testing.assert_allclose(actual[:, 0], [3, -0.5, -0.5, -0.5])


@pytest.mark.parametrize(
  'piece', [credit.TokenHiddenReward(), credit.NegativeTokenDamping()]
)
@pytest.mark.parametrize('reward', [0.0, 1.0])
def test_groups_that_agree_keep_their_advantage(toy, piece, reward):
  """Nothing to compare: the advantage of a GRPO row on all of its tokens."""
  traj = rollout(toy, reward_B=np.full(2, reward))
  np.testing.assert_array_equal(
    piece(CreditContext(jnp.array([2.0, -2.0]), traj)).value, [[2, 2], [-2, -2]]
  )


def test_without_threshold_and_direction_thr_is_grpo(toy):
  """beta = 0, direction = 0: every token with s != 0 keeps A."""
  piece = credit.TokenHiddenReward(direction=0.0, beta=0.0)
  np.testing.assert_array_equal(
    piece(CreditContext(jnp.array([2.0, -2.0]), rollout(toy))).value,
    [[2, 2], [-2, -2]],
  )


def test_a_rotation_of_hidden_space_changes_nothing(toy):
  """E1: only inner products of hidden states count."""
  rng = np.random.default_rng(1)
  hidden = rng.normal(size=(2, 2, 4))
  turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
  right = jnp.array([1.0, 0.0])
  np.testing.assert_allclose(
    influence(rollout(toy, hidden=hidden @ turn), right),
    influence(rollout(toy, hidden=hidden), right),
    rtol=1e-5,
    atol=1e-5,
  )
