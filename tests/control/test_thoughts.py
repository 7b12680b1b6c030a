"""Continuous chains of thought."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import thoughts
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models import presets
from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.statistics import ActionProbs

NOW, OLD = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.4, 0.4, 0.2])
ACTIONS = (0, 1, 2)


def power(prob, k):
  """The distribution whose root of order k is prob."""
  return prob**k / (prob**k).sum()


def ratio(count, draws, normalised, now=NOW, old=OLD):
  """rho of one thought, from its loss at advantage 1 without a clip."""
  k = draws if normalised else 1
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  count_BTA = jnp.zeros((1, 2, 3)).at[0, 0].set(jnp.asarray(count, float))
  old_BTA = jnp.broadcast_to(jnp.log(old), (1, 2, 3))
  zero_BT = jnp.zeros((1, 2))
  rows = rows.replace(
    extras={thoughts.DRAWS: count_BTA, thoughts.DRAWN_LOGP: old_BTA},
    advantages_BT=jnp.ones((1, 2)),
    logp_old_BT=zero_BT,
  )
  prob_BTA = jnp.broadcast_to(power(now, k), (1, 2, 3))
  stats = {'logp': zero_BT + jnp.log(1.5), 'action_probs': prob_BTA}
  loss = thoughts.ThoughtClip(
    actions=ACTIONS, draws=draws, normalised=normalised, clip=1.0
  )
  return -loss(LossContext(stats, rows)).value[0]


def test_ratios_by_hand():
  """E1: draws 0, 0, 1: (.5 / .4)^2 (.3 / .4), and its third root."""
  found = ratio([2, 1, 0], 3, normalised=True)
  np.testing.assert_allclose(found, [1.171875, 1.5], rtol=1e-5)
  found = ratio([2, 1, 0], 3, normalised=False)
  np.testing.assert_allclose(found[0], 1.05429, rtol=1e-5)


def test_one_draw_is_ppo():
  """E1: the ratio of the drawn token, clipped as PPOClip does."""
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  count_BTA = jnp.zeros((1, 2, 3)).at[0, 0, 0].set(1.0)
  logp_BT = jnp.log(jnp.array([[0.5, 0.9]]))
  rows = rows.replace(
    extras={
      thoughts.DRAWS: count_BTA,
      thoughts.DRAWN_LOGP: jnp.broadcast_to(jnp.log(OLD), (1, 2, 3)),
    },
    advantages_BT=jnp.array([[1.0, -2.0]]),
    logp_old_BT=jnp.log(jnp.array([[0.4, 0.8]])),
  )
  stats = {
    'logp': logp_BT,
    'action_probs': jnp.broadcast_to(NOW, (1, 2, 3)),
  }
  loss = thoughts.ThoughtClip(actions=ACTIONS, draws=1)
  plain = losses.PPOClip(clip_low=0.1, clip_high=0.1)
  np.testing.assert_allclose(
    loss(LossContext(stats, rows)).value,
    plain(LossContext(stats, rows)).value,
    rtol=1e-5,
  )


def small():
  """(forward, parameters) of three thought tokens and a blank."""
  model = presets.small(
    vocab_size=4,
    num_layers=1,
    width=8,
    num_heads=1,
    num_kv_heads=1,
    head_size=8,
    mlp_size=16,
  )
  return Forward(model=model), thoughts.init_params(model, 3, jax.random.key(0))


def drawn(draws, soft=False):
  forward, params = small()
  rows = thoughts.blank_rows(jnp.ones((2, 1), jnp.int32), 4, 2, 3, 3)
  loss = thoughts.ThoughtClip(actions=ACTIONS, draws=draws)
  traj = thoughts.think(
    forward, params, rows, jax.random.key(1), loss, soft=soft
  )
  return forward, params, traj, loss


def test_ratio_is_one_on_policy():
  """E1: what was sampled is what training computes, at every place."""
  forward, params, traj, loss = drawn(3)
  stats = token_statistics(
    forward, params, traj, {'logp', ActionProbs(actions=ACTIONS)}
  )
  traj = traj.replace(
    advantages_BT=jnp.ones_like(traj.mask_BT), logp_old_BT=stats['logp']
  )
  found = loss(LossContext(stats, traj)).value
  np.testing.assert_allclose(found, -1.0, rtol=1e-5)
  counts = traj.extras[thoughts.DRAWS].sum(axis=-1)
  np.testing.assert_array_equal(counts, [[3, 3, 0]] * 8)
  np.testing.assert_allclose(traj.inputs_BTF.sum(axis=-1), [[1, 1, 0]] * 8)
  assert (traj.response_BT[:, :2] == 3).all()


def test_order_of_thought_tokens_changes_nothing():
  """E1: probabilities, draws and old log-probabilities in another order."""
  order = jnp.array([2, 0, 1])
  found = ratio(jnp.array([2, 1, 0])[order], 3, True, NOW[order], OLD[order])
  np.testing.assert_allclose(found, ratio([2, 1, 0], 3, True), rtol=1e-5)


def test_soft_thoughts_draw_nothing():
  """E0: all samples of a prompt are the same."""
  _, _, traj, _ = drawn(3, soft=True)
  np.testing.assert_array_equal(traj.inputs_BTF[0], traj.inputs_BTF[3])
  np.testing.assert_array_equal(traj.response_BT[0], traj.response_BT[3])


def test_targets_by_hand():
  """E1: half of log 2 and log 4 at the thought, -log p at the answer."""
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  target = jnp.zeros((1, 2, 3)).at[0, 0].set(jnp.array([0.5, 0.5, 0.0]))
  rows = rows.replace(extras={thoughts.TARGET: target})
  prob = jnp.broadcast_to(jnp.array([0.5, 0.25, 0.25]), (1, 2, 3))
  stats = {'logp': jnp.full((1, 2), jnp.log(0.1)), 'action_probs': prob}
  loss = thoughts.ThoughtTargets(actions=ACTIONS)
  np.testing.assert_allclose(
    loss(LossContext(stats, rows)).value,
    [[1.5 * np.log(2), np.log(10)]],
    rtol=1e-5,
  )


def test_a_missing_input_is_named():
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  rows = rows.replace(
    extras={}, advantages_BT=rows.mask_BT, logp_old_BT=rows.mask_BT
  )
  with pytest.raises(ValueError, match='draws_BTA'):
    thoughts.ThoughtClip(actions=ACTIONS)(
      LossContext({'logp': rows.mask_BT}, rows)
    )
