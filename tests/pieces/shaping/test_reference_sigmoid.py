"""PAR against the reference rewards 1 and 3."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, shaping
from rl_jax.pieces.roles import CreditContext


def par(toy, reward, reference=(1.0, 3.0), length=None, **fields):
  """One group."""
  B = len(reward)
  length = np.ones(B) if length is None else np.asarray(length)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    length_B=length.astype(np.int32),
    extras={'reference_reward_NM': np.asarray([reference])},
  )
  return shaping.ReferenceSigmoid(**fields)(
    CreditContext(jnp.asarray(reward), traj)
  ).value


def test_by_hand(toy):
  """r = 2: (sigmoid(1) + sigmoid(-1)) / 2; r = 4: (.952574 + .731059) / 2; with
  k = 2, r = 4: (.997527 + .880797) / 2."""
  np.testing.assert_allclose(par(toy, [2.0, 4.0]), [0.5, 0.841817], rtol=1e-5)
  np.testing.assert_allclose(par(toy, [4.0], k=2.0), [0.939162], rtol=1e-5)


@pytest.mark.parametrize(
  ('fields', 'expected'),
  [
    ({'link': 'identity'}, 2.0),  # (3 + 1) / 2
    ({'link': 'tanh'}, (0.995055 + 0.761594) / 2),
    ({'link': 'arctan'}, (1.249046 + 0.785398) / 2),
    ({'shift': 3.0}, (0.5 + 0.119203) / 2),  # sigmoids of 0 and -2
    ({'ceiling': 2.0}, 0.5),  # 2 counts: sigmoids of 1 and -1
    ({'references': False}, 0.982014),  # sigmoid of 4
    ({'references': False, 'link': 'tanh', 'k': 0.5}, 0.964028),  # tanh of 2
    # min(4, 3) and nothing else
    ({'references': False, 'link': 'identity', 'ceiling': 3.0}, 3.0),
  ],
)
def test_siblings_by_hand(toy, fields, expected):
  """r = 4."""
  np.testing.assert_allclose(par(toy, [4.0], **fields), [expected], rtol=1e-5)


def test_the_polynomial_of_the_sigmoid(toy):
  """E2: 1/2 at 0, odd about it, at most .03 from the sigmoid, 0 and 1 beyond
  five; of degree five, so that differences of order six vanish."""
  reward = np.array([-9.0, -5.0, -3.0, -2.0, -1.0, 0, 1.0, 2.0, 3.0, 5.0, 9.0])
  R = np.asarray(par(toy, reward, references=False, link='polynomial'))
  np.testing.assert_allclose(R + R[::-1], 1.0, atol=1e-6)
  np.testing.assert_array_equal(R[[0, 1, -2, -1]], [0, 0, 1, 1])
  sigmoid = 1 / (1 + np.exp(-reward))
  assert 0.01 < np.abs(R - sigmoid).max() < 0.03
  np.testing.assert_allclose(np.diff(R[2:-2], 6), 0.0, atol=1e-5)
  assert np.abs(np.diff(R[2:-2], 5)).max() > 0.01


def test_a_ceiling_comes_before_the_length_penalty(toy):
  """min(4, 3) - .01 * 200; without references none are read."""
  fields = {'link': 'identity', 'references': False, 'ceiling': 3.0}
  found = par(toy, [4.0, 4.0, 2.0], length=[500, 1, 1], **fields)
  np.testing.assert_allclose(found, [1.0, 3.0, 2.0], rtol=1e-6)
  traj = toy.trajectories(np.ones((1, 1)), group_size=1)
  alone = shaping.ReferenceSigmoid(**fields)(
    CreditContext(jnp.zeros(1), traj)
  ).value
  np.testing.assert_array_equal(alone, [0.0])
  with pytest.raises(ValueError, match=r'ReferenceSigmoid.quantile = 0.85'):
    shaping.ReferenceSigmoid(references=False, quantile=0.85)


def test_quantile_by_hand(toy):
  """z(.85) = 1.036433 and the deviation of 1 and 3 is 1.414214: r = 4 is
  .534252 above 3.465748; log sigmoid of that is -log(1.586107)."""
  found = par(toy, [4.0], link='log_sigmoid', quantile=0.85)
  np.testing.assert_allclose(found, [-0.461283], rtol=1e-5)
  # The median of references is their mean; a single one is itself.
  median = par(toy, [4.0], link='tanh', quantile=0.5)
  np.testing.assert_allclose(median, np.tanh([2.0]), rtol=1e-6)
  alone = par(toy, [4.0], (3.0,), quantile=0.85)
  np.testing.assert_allclose(alone, par(toy, [4.0], (3.0,)), rtol=1e-4)


def test_the_centred_reward_is_grpo(toy):
  """E1: the group takes mean and scale away; PAR's sigmoid stays."""
  reward = np.array([0.0, 1.0, 9.0, 2.0], np.float32)
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)

  def scaled(x):
    for piece in (credit.GroupCenter(), credit.GroupScale()):
      x = piece(CreditContext(x, traj)).value
    return x

  plain = scaled(jnp.asarray(reward))
  centred = scaled(par(toy, reward, link='identity', k=0.5))
  np.testing.assert_allclose(centred, plain, rtol=1e-4)
  assert np.abs(scaled(par(toy, reward)) - plain).max() > 0.1


def test_length_penalty_comes_first(toy):
  """500 tokens cost .01 * 200 = 2 of the raw reward: 4 becomes 2."""
  R = par(toy, [4.0, 4.0], length=[500, 300])
  np.testing.assert_allclose(R, [0.5, 0.841817], rtol=1e-5)


def test_bounded_centred_and_shift_free(toy):
  """1/2 at the reference, inside (0, 1), monotone, free of a constant. E1."""
  np.testing.assert_allclose(par(toy, [7.0], [7.0, 7.0]), [0.5], rtol=1e-6)
  reward = np.linspace(-5.0, 9.0, 20)
  R = par(toy, reward)
  assert (np.diff(R) > 0).all() and R.min() > 0 and R.max() < 1
  shifted = par(toy, reward + 8.0, (9.0, 11.0))
  np.testing.assert_allclose(shifted, R, rtol=1e-5)


def test_small_k_is_the_centred_reward(toy):
  """E1: 4 (R - 1/2) / k -> r - mean reference."""
  k = 1e-2
  R = par(toy, [5.0, -1.0], k=k)
  np.testing.assert_allclose(4 * (R - 0.5) / k, [3.0, -3.0], rtol=1e-3)


def test_a_missing_key_is_named(toy):
  """The references come from the data set."""
  traj = toy.trajectories(np.ones((1, 1)), group_size=1)
  with pytest.raises(ValueError, match='reference_reward_NM'):
    shaping.ReferenceSigmoid()(CreditContext(jnp.zeros(1), traj))


def test_one_reference_as_a_component(toy):
  """A value per prompt, shared by its rows; a failed row (0) does not count."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=2,
    valid_B=np.asarray([1.0, 0.0, 1.0, 1.0]),
    rewards={'reference_reward': np.asarray([2.0, 0.0, 3.0, 3.0])},
  )
  R = shaping.ReferenceSigmoid()(
    CreditContext(jnp.asarray([2.0, 2.0, 3.0, 4.0]), traj)
  ).value
  np.testing.assert_allclose(R, [0.5, 0.5, 0.5, 0.731059], rtol=1e-5)
