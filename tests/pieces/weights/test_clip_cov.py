"""Clip-Cov on six tokens."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method, validate
from rl_jax.pieces import losses, weights
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

# mean logp -1.558333, mean A 0: cov = A (logp - mean):
# [1.5083, 1.4583, -1.4417, .4417, -1.3583, 2.4417]: 0, 1 and 5 lie in (1, 5).
LOGP = np.array([[-0.05, -0.1, -3.0, -2.0, -0.2, -4.0]], np.float32)
ADV = np.array([[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]], np.float32)
# The limits that the paper gives PPOClip.
Wide = functools.partial(weights.ClipCovDrop, clip_low=1.0, clip_high=1.0)
HALF = Wide(fraction=0.5)  # three of six tokens


def drop(toy, piece, key=0, logp=LOGP, adv=ADV, old=None, mask=None):
  """Weights of the toy row."""
  traj = toy.trajectories(
    np.ones(logp.shape) if mask is None else mask,
    group_size=1,
    logp_old_BT=logp if old is None else old,
    advantages_BT=adv,
  )
  return np.asarray(
    piece(
      LossContext({'logp': jnp.asarray(logp)}, traj, jax.random.key(key))
    ).value
  )


def test_all_eligible_tokens_are_dropped(toy):
  """Three may go and three are eligible."""
  np.testing.assert_array_equal(drop(toy, HALF), [[0, 0, 1, 1, 1, 0]])


def test_window_limits_count(toy):
  """cov in (1.48, 2): token 0 only. cov in (-2, -1.4): token 2 only."""
  narrow = dataclasses.replace(HALF, low=1.48, high=2.0)
  np.testing.assert_array_equal(drop(toy, narrow), [[0, 1, 1, 1, 1, 1]])
  negative = dataclasses.replace(HALF, low=-2.0, high=-1.4)
  np.testing.assert_array_equal(drop(toy, negative), [[1, 1, 0, 1, 1, 1]])


def test_nothing_eligible_is_the_base_method(toy):
  """E0: all weights are 1."""
  piece = dataclasses.replace(HALF, low=10.0, high=20.0)
  np.testing.assert_array_equal(drop(toy, piece), np.ones((1, 6)))


def test_number_of_dropped_tokens(toy):
  """max(floor(r 6), 1): r = 2e-4 and r = 1/6 give one, r = .4 two."""
  for fraction, count in ((2e-4, 1), (0.17, 1), (0.4, 2), (1.0, 3)):
    piece = Wide(fraction=fraction)
    weight = drop(toy, piece)
    assert 6 - weight.sum() == count
    assert (weight[0, [2, 3, 4]] == 1).all()


def test_the_draw_is_uniform(toy):
  """Over 300 keys each of three tokens is drawn 100 times, sd 8.2."""
  traj = toy.trajectories(
    np.ones((1, 6)), group_size=1, logp_old_BT=LOGP, advantages_BT=ADV
  )
  keys = jax.random.split(jax.random.key(0), 300)
  draw = jax.jit(
    jax.vmap(
      lambda key: (
        Wide()(LossContext({'logp': jnp.asarray(LOGP)}, traj, key)).value
      )
    )
  )
  counts = (1 - draw(keys)).sum((0, 1))
  np.testing.assert_array_equal(counts[jnp.array([2, 3, 4])], 0)
  assert (np.abs(counts[jnp.array([0, 1, 5])] - 100) < 4 * 8.2).all()


def test_clipped_tokens_are_not_eligible(toy):
  """Token 0 has A > 0 and ratio 3 > 2: PPO has cut it already."""
  old = LOGP - np.log([[3, 1, 1, 1, 1, 1]]).astype(np.float32)
  weight = drop(toy, HALF, old=old)
  np.testing.assert_array_equal(weight, [[1, 0, 1, 1, 1, 0]])


def test_selection_ignores_constants(toy):
  """Adding a constant to A or to logp moves no covariance."""
  base = drop(toy, HALF)
  np.testing.assert_array_equal(drop(toy, HALF, adv=ADV + 5), base)
  np.testing.assert_array_equal(drop(toy, HALF, logp=LOGP - 2), base)


def test_padding_does_not_change_the_draw(toy):
  """E0: the same random token at any width."""
  pad = ((0, 0), (0, 3))
  mask = np.pad(np.ones((1, 6)), pad)
  for key in range(4):
    narrow = drop(toy, Wide(), key)
    wide = drop(
      toy,
      Wide(),
      key,
      logp=np.pad(LOGP, pad),
      adv=np.pad(ADV, pad),
      mask=mask,
    )
    np.testing.assert_array_equal(wide[:, :6], narrow)


def test_limits_are_shared_with_ppo():
  """Other limits in PPOClip, or no PPOClip, are refused at start-up."""

  def method(loss):
    return Method(losses=(loss,), weights=(HALF,), aggregation=TokenMean())

  validate(
    method(losses.PPOClip(clip_low=1.0, clip_high=1.0)),
    group_size=1,
    has_value_head=False,
  )
  for loss in (losses.PPOClip(), losses.Reinforce()):
    with pytest.raises(ValueError, match='clip_low = 1.0'):
      validate(method(loss), group_size=1, has_value_head=False)


def test_limits_left_out_are_those_of_ppo():
  """`--add=method.weights=ClipCovDrop()` fits any method with PPOClip."""
  method = Method(
    losses=(losses.PPOClip(clip_low=0.2, clip_high=0.28),),
    weights=(weights.ClipCovDrop(),),
    aggregation=TokenMean(),
  )
  validate(method, group_size=1, has_value_head=False)
  (piece,) = method.resolved().weights
  assert (piece.clip_low, piece.clip_high) == (0.2, 0.28)
