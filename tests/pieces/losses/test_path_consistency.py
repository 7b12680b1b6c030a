"""Soft Q-learning on paths of tokens."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.statistics import Chunk, LogNormaliser

KEY = jax.random.key(0)
LOGP = np.array([[-0.5, 9.0, -1.0, 9.0]])  # of two tokens; others are not read
VALUE = np.array([[0.25, 9.0, 0.75, 9.0]])
MASK = np.array([[1.0, 0.0, 1.0, 0.0]])


def evaluate(toy, logp, value, reward, mask=None, scale=1.0):
  """Losses [1, T]; the reward is on all trained tokens, as credit leaves it."""
  mask = np.ones_like(logp) if mask is None else mask
  traj = toy.trajectories(mask, group_size=1, advantages_BT=reward * mask)
  stats = {'logp': jnp.asarray(logp), 'log_normaliser_target': value}
  stats = jax.tree.map(jnp.asarray, stats)
  found = losses.PathConsistency(scale=scale)(
    LossContext(stats, traj, KEY)
  ).value
  return np.where(mask > 0, found, 0.0)


def test_one_token_by_hand(toy):
  """Logits (1, 0), action 0, R = 2: A = -.3133, V = 1.3133, both errors 1."""
  logits = jnp.array([[[1.0, 0.0]]])
  chunk = Chunk(
    logits_BCV=0 * logits,
    token_BC=jnp.zeros((1, 1), jnp.int32),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={'target': logits},
  )
  value = LogNormaliser('target')(chunk)
  logp = jax.nn.log_softmax(logits)[..., 0]
  np.testing.assert_allclose(
    [logp[0, 0], value[0, 0]], [-0.31326, 1.31326], 1e-4
  )
  np.testing.assert_allclose(evaluate(toy, logp, value, 2.0), 1.0, rtol=1e-5)
  # One token, the target is the policy: squared errors of the logit.
  for reward in (0.0, 1.5):
    found = evaluate(toy, logp, value, reward)
    np.testing.assert_allclose(found, (1.0 - reward) ** 2, atol=1e-6)


def test_two_tokens_by_hand(toy):
  """Steps -.5 - .5 and -1 - .25, paths -1.5 - .75 and -1 - .25; R = 1."""
  expected = [[0.5 * (1.0 + 2.25**2), 0.0, 1.25**2, 0.0]]
  found = evaluate(toy, LOGP, VALUE, 1.0, MASK)
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  half = evaluate(toy, LOGP, VALUE, 0.5, MASK, scale=2.0)
  np.testing.assert_allclose(half, found, rtol=1e-6)


def test_a_constant_in_all_values_changes_nothing(toy):
  """E1: only differences of R and V count."""
  moved = evaluate(toy, LOGP, VALUE + 3.0, 4.0, MASK)
  found = evaluate(toy, LOGP, VALUE, 1.0, MASK)
  np.testing.assert_allclose(moved, found, rtol=1e-5)


def test_the_softmax_of_rewards_is_a_fixed_point(toy):
  """Q = R on one-token rows: no error, whatever the rewards are."""
  reward = jnp.array([0.3, -1.2, 2.0])
  value = jax.nn.logsumexp(reward)[None, None]
  for action, r in enumerate(reward):
    logp = jax.nn.log_softmax(reward)[None, action : action + 1]
    np.testing.assert_allclose(
      evaluate(toy, logp, value, float(r)), 0, atol=1e-5
    )
