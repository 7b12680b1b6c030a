"""Continuous chains of thought."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import thoughts
from rl_jax.control.thought_draws import DirichletDraws, TokenDraws
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models import presets
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.statistics import ActionProbs

NOW, OLD = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.4, 0.4, 0.2])
ACTIONS = (0, 1, 2)


def power(prob, k):
  """The distribution whose root of order k is prob."""
  return prob**k / (prob**k).sum()


def ratio(count, draws, normalised, now=NOW, old=OLD):
  """rho of one thought, from its loss at advantage 1 without a clip."""
  draw = TokenDraws(draws=draws, normalised=normalised)
  k = draws if normalised else 1
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  count_BTA = jnp.zeros((1, 2, 3)).at[0, 0].set(jnp.asarray(count, float))
  old_BTA = jnp.broadcast_to(power(old, k), (1, 2, 3))
  zero_BT = jnp.zeros((1, 2))
  rows = rows.replace(
    inputs_BTF=count_BTA / draws,
    extras={
      thoughts.DRAWN: count_BTA,
      thoughts.DRAWN_LOGP: draw.logp(old_BTA, count_BTA),
    },
    advantages_BT=jnp.ones((1, 2)),
    logp_old_BT=zero_BT,
  )
  prob_BTA = jnp.broadcast_to(power(now, k), (1, 2, 3))
  stats = {'logp': zero_BT + jnp.log(1.5), 'action_probs': prob_BTA}
  loss = thoughts.ThoughtClip(actions=ACTIONS, draw=draw, clip=1.0)
  return -loss(LossContext(stats, rows)).value[0]


def test_ratios_by_hand():
  """E1: draws 0, 0, 1: (.5 / .4)^2 (.3 / .4), and its third root."""
  found = ratio([2, 1, 0], 3, normalised=True)
  np.testing.assert_allclose(found, [1.171875, 1.5], rtol=1e-5)
  found = ratio([2, 1, 0], 3, normalised=False)
  np.testing.assert_allclose(found[0], 1.05429, rtol=1e-5)


def one_token():
  """(statistics, rows) of a thought of one token and an answer."""
  rows = thoughts.blank_rows(jnp.zeros((1, 1), jnp.int32), 1, 1, 3, 3)
  count_BTA = jnp.zeros((1, 2, 3)).at[0, 0, 0].set(1.0)
  logp_BT = jnp.log(jnp.array([[0.5, 0.9]]))
  old_BT = jnp.log(jnp.array([[0.4, 0.8]]))
  rows = rows.replace(
    inputs_BTF=count_BTA,
    extras={
      thoughts.DRAWN: count_BTA,
      thoughts.DRAWN_LOGP: old_BT,
      thoughts.REFERENCE: old_BT,
    },
    advantages_BT=jnp.array([[1.0, -2.0]]),
    logp_old_BT=old_BT,
    logp_ref_BT=old_BT,
  )
  probs_BTA = jnp.broadcast_to(NOW, (1, 2, 3))
  return {'logp': logp_BT, 'action_probs': probs_BTA}, rows


@pytest.mark.parametrize(
  ('piece', 'plain'),
  [
    (thoughts.ThoughtClip, losses.PPOClip(clip_low=0.1, clip_high=0.1)),
    (thoughts.ThoughtKL, regularizers.KLPenalty(coef=0.1)),
  ],
)
def test_one_draw_is_an_ordinary_token(piece, plain):
  """E1: the ratio and the divergence are those of the drawn token."""
  stats, rows = one_token()
  own = piece(actions=ACTIONS, draw=TokenDraws(draws=1))
  np.testing.assert_allclose(
    own(LossContext(stats, rows)).value,
    plain(LossContext(stats, rows)).value,
    rtol=1e-5,
  )


def test_the_divergence_by_hand():
  """E1: draws 0, 0, 1 with x = log of the reference over the policy, k3 =
  e^x - x - 1 of their product, and of the answer .8 over .9, times 0.1."""
  stats, rows = one_token()
  draw = TokenDraws(draws=3)
  count_BTA = jnp.zeros((1, 2, 3)).at[0, 0].set(jnp.array([2.0, 1.0, 0.0]))
  stats['action_probs'] = jnp.broadcast_to(power(NOW, 3), (1, 2, 3))
  ref_BT = draw.logp(jnp.broadcast_to(power(OLD, 3), (1, 2, 3)), count_BTA)
  rows.extras[thoughts.DRAWN] = count_BTA
  rows.extras[thoughts.REFERENCE] = jnp.where(
    count_BTA.sum(-1) > 0, ref_BT, jnp.log(0.8)
  )
  loss = thoughts.ThoughtKL(actions=ACTIONS, draw=draw)
  x = np.log([[1 / 1.171875, 0.8 / 0.9]])
  np.testing.assert_allclose(
    loss(LossContext(stats, rows)).value,
    0.1 * (np.exp(x) - x - 1),
    rtol=1e-4,
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


def drawn(draw, soft=False):
  forward, params = small()
  rows = thoughts.blank_rows(jnp.ones((2, 1), jnp.int32), 4, 2, 3, 3)
  loss = thoughts.ThoughtClip(actions=ACTIONS, draw=draw)
  traj = thoughts.think(
    forward, params, rows, jax.random.key(1), loss, soft=soft
  )
  return forward, params, traj, loss


DRAWS = [TokenDraws(), TokenDraws(normalised=False), DirichletDraws()]


@pytest.mark.parametrize('draw', DRAWS)
def test_the_policy_itself_has_ratio_one_and_no_divergence(draw):
  """E1: what was sampled is what training computes, at every place."""
  forward, params, traj, loss = drawn(draw)
  stats = token_statistics(
    forward, params, traj, {'logp', ActionProbs(actions=ACTIONS)}
  )
  traj = thoughts.with_reference(forward, params, traj, loss)
  traj = traj.replace(
    advantages_BT=jnp.ones_like(traj.mask_BT), logp_old_BT=stats['logp']
  )
  found = loss(LossContext(stats, traj)).value
  np.testing.assert_allclose(found, -1.0, rtol=1e-5)
  kl = thoughts.ThoughtKL(actions=ACTIONS, draw=draw)
  np.testing.assert_allclose(kl(LossContext(stats, traj)).value, 0, atol=1e-6)
  np.testing.assert_allclose(
    traj.inputs_BTF.sum(axis=-1), [[1, 1, 0]] * 8, rtol=1e-5
  )
  assert (traj.response_BT[:, :2] == 3).all()


def test_counts_of_draws():
  _, _, traj, _ = drawn(TokenDraws())
  counts = traj.extras[thoughts.DRAWN].sum(axis=-1)
  np.testing.assert_array_equal(counts, [[3, 3, 0]] * 8)


def test_order_of_thought_tokens_changes_nothing():
  """E1: probabilities, draws and old log-probabilities in another order."""
  order = jnp.array([2, 0, 1])
  found = ratio(jnp.array([2, 1, 0])[order], 3, True, NOW[order], OLD[order])
  np.testing.assert_allclose(found, ratio([2, 1, 0], 3, True), rtol=1e-5)


def test_soft_thoughts_draw_nothing():
  """E0: all samples of a prompt are the same."""
  _, _, traj, _ = drawn(TokenDraws(), soft=True)
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
  with pytest.raises(ValueError, match='drawn_BTA'):
    thoughts.ThoughtClip(actions=ACTIONS)(
      LossContext({'logp': rows.mask_BT}, rows)
    )
