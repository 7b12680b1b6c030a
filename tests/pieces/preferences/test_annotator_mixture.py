"""EM over annotators, by hand: two groups, a head each."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import CreditContext, LossContext

PIECE = pref.AnnotatorMixture(annotators=3, period=1, center=0.0)
# Heads [row, group]: pair 0 has d = (1, -1), pair 1 d = (-2, 0.5).
HEADS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [1.0, 0.0]])
WHO = np.array([0.0, 0.0, 2.0, 2.0])


def softplus(x):
  return np.log1p(np.exp(x))


def rows(toy, who=WHO, **fields):
  """Two pairs, the first row of each is chosen."""
  traj = toy.trajectories(
    np.ones((4, 2)),
    group_size=2,
    extras={'annotator_B': who, 'chosen_B': np.array([1.0, 0, 1, 0])},
    **fields,
  )
  return traj.replace(
    edges=pref.RecordedPairs()(CreditContext(traj.reward_B, traj)).value
  )


def state(*groups):
  """The state with annotators in these groups."""
  return PIECE.init(0) | {'group_A': jnp.array(groups)}


def evaluate(traj, groups=(0, 0, 0), piece=PIECE, heads=HEADS):
  """(loss, slope in the heads after the last token, next state)."""
  groups = groups if isinstance(groups, dict) else state(*groups)

  def call(heads_BU):
    stats = jnp.stack([0 * heads_BU, heads_BU], axis=1)
    loss, metrics, new = piece(
      LossContext({'value_heads_after': stats}, traj, None, groups)
    )
    return loss, (metrics, new)

  (loss, (metrics, new)), slope = jax.value_and_grad(call, has_aux=True)(
    jnp.asarray(heads, jnp.float32)
  )
  return float(loss), np.asarray(slope), new, metrics


def test_by_hand(toy):
  """All in group 0: d = 1 and -2, no slope in head 1. Then annotator 2 has the
  larger likelihood, -0.474 against -2.127, in group 1."""
  loss, slope, new, metrics = evaluate(rows(toy))
  assert loss == pytest.approx((softplus(-1.0) + softplus(2.0)) / 2, rel=1e-6)
  assert not slope[:, 1].any()
  first, second = (1 / (1 + np.exp(x)) / 2 for x in (1.0, -2.0))
  np.testing.assert_allclose(
    slope[:, 0], [-first, first, -second, second], rtol=1e-6
  )
  np.testing.assert_array_equal(new['group_A'], [0, 0, 1])
  assert metrics['preference/accuracy'] == 0.5
  assert metrics['preference/moved'] == np.float32(1 / 3)


def test_the_choice_of_groups_raises_the_likelihood(toy):
  """The E-step of EM, for any heads and any groups before."""
  rng = np.random.default_rng(0)
  for _ in range(5):
    heads = rng.normal(size=(4, 2))
    before, _, new, _ = evaluate(
      rows(toy), rng.integers(2, size=3), heads=heads
    )
    after, _, _, _ = evaluate(
      rows(toy), np.asarray(new['group_A']), heads=heads
    )
    assert after <= before + 1e-7


def test_groups_change_at_the_end_of_a_period(toy):
  """A period has three steps: sums over all of them, then none."""
  piece, now = PIECE.replace(period=3), state(0, 0, 0)
  for step in range(3):
    assert now['group_A'][2] == 0
    _, _, now, _ = evaluate(rows(toy), now, piece)
    if step == 1:
      np.testing.assert_allclose(
        now['total_AU'][2],
        2 * np.array([-softplus(2.0), -softplus(-0.5)]),
        rtol=1e-5,
      )
  assert now['group_A'][2] == 1 and not now['total_AU'].any()


def test_an_annotator_without_pairs_keeps_the_group(toy):
  _, _, new, _ = evaluate(rows(toy), (0, 1, 0))
  np.testing.assert_array_equal(new['group_A'], [0, 1, 1])


def test_one_group_is_the_reward_model(toy):
  """E1: K = 1 is Bradley and Terry on all pairs, with its centring."""
  traj = rows(toy)
  one = PIECE.replace(groups=1, center=0.1)
  loss, slope, _, _ = evaluate(traj, one.init(0), one)

  def plain(head_B):
    stats = {'values_after': jnp.stack([0 * head_B, head_B], axis=1)}
    score = pref.FinalValue()
    terms = (
      pref.PairLoss(score=score, link=pref.Sigmoid()),
      pref.CenteredScores(score=score, coef=0.1),
    )
    stats['logp'] = jnp.zeros((4, 2))
    return sum(term(LossContext(stats, traj, None)).value for term in terms)

  value, expected = jax.value_and_grad(plain)(jnp.float32(HEADS[:, 0]))
  assert loss == pytest.approx(float(value), rel=1e-6)
  np.testing.assert_allclose(slope[:, 0], expected, rtol=1e-5)


def test_names_of_groups_mean_nothing(toy):
  """Invariance: heads and groups exchanged, the loss is the same."""
  one, _, new, _ = evaluate(rows(toy), (0, 0, 1))
  other, _, swapped, _ = evaluate(rows(toy), (1, 1, 0), heads=HEADS[:, ::-1])
  assert one == other
  seen = [0, 2]
  np.testing.assert_array_equal(
    new['group_A'][jnp.array(seen)], 1 - swapped['group_A'][jnp.array(seen)]
  )


def test_what_does_not_fit_is_refused():
  with pytest.raises(ValueError, match='annotators = 3, but task.annotators'):
    PIECE.check(CheckContext(task=types.SimpleNamespace(annotators=5)))
