"""Pieces that read several rewards, or bend one."""

import numpy as np
import pytest

from rl_jax.pieces import credit, shaping
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import CreditContext

REWARDS = {'a': np.array([1.0, 3.0, 0.0, 9.0]), 'b': np.array([2.0, 1, 2, 9])}
VALID = np.array([1.0, 1.0, 1.0, 0.0])


@pytest.fixture
def rows(toy):
  """A group of four, the last row invalid; means 4/3 of a and 5/3 of b."""
  return toy.trajectories(
    np.ones((4, 1)),
    group_size=4,
    valid_B=VALID,
    rewards=REWARDS,
    finished_B=np.array([True, True, False, True]),
  )


def test_worst_component_by_hand(rows):
  """One for the batch, by means: not the minimum of each row."""
  piece = shaping.WorstComponent(components=('b', 'a'))
  np.testing.assert_array_equal(
    piece(CreditContext(None, rows)).value, REWARDS['a']
  )
  moved = rows.replace(rewards={**rows.rewards, 'a': rows.rewards['a'] + 1})
  np.testing.assert_array_equal(
    piece(CreditContext(None, moved)).value, REWARDS['b']
  )


def test_one_component_is_the_reward(rows):
  """E0: reductions of all three, and a permutation of the names."""
  for piece in (shaping.WorstComponent, shaping.Ensemble):
    found = piece(components=('a',))(CreditContext(None, rows)).value
    np.testing.assert_array_equal(found, REWARDS['a'])
  both = shaping.Ensemble(components=('a', 'b'))(
    CreditContext(None, rows)
  ).value
  turned = shaping.Ensemble(components=('b', 'a'))(
    CreditContext(None, rows)
  ).value
  np.testing.assert_array_equal(both, turned)


def test_ensemble_by_hand(rows):
  """Row 1: mean 2, variance 1; coef 0.5."""
  found = shaping.Ensemble(components=('a', 'b'))(
    CreditContext(None, rows)
  ).value
  np.testing.assert_allclose(found, [1.5 - 0.125, 1.5, 0.5, 9.0])
  worst = shaping.Ensemble(components=('a', 'b'), kind='worst')(
    CreditContext(None, rows)
  ).value
  np.testing.assert_array_equal(worst, [1.0, 1.0, 0.0, 9.0])


def test_component_scale_by_hand(rows):
  """a: deviations (-1/3, 5/3, -4/3), std sqrt(7/3); b: (1/3, -2/3, 1/3)."""
  piece = credit.ComponentScale(components=('a', 'b'), weights=(1.0, 2.0))
  found = piece(CreditContext(rows.reward_B, rows)).value
  a = np.array([-1, 5, -4]) / 3 / np.sqrt(7 / 3)
  b = np.array([1, -2, 1]) / 3 / np.sqrt(1 / 3)
  np.testing.assert_allclose(found[:3], a + 2 * b, rtol=1e-5)
  assert found[3] == 0
  # E1: the unit of a component does not count.
  scaled = rows.replace(rewards={**rows.rewards, 'b': 100 * rows.rewards['b']})
  np.testing.assert_allclose(
    piece(CreditContext(rows.reward_B, scaled)).value, found, rtol=1e-4
  )


def test_component_scale_of_one_is_grpo(rows):
  """E1: GroupCenter, then GroupScale."""
  piece = credit.ComponentScale(components=('a',), weights=(1.0,))
  centered = credit.GroupCenter()(CreditContext(rows.rewards['a'], rows)).value
  expected = credit.GroupScale()(CreditContext(centered, rows)).value
  np.testing.assert_allclose(
    piece(CreditContext(rows.reward_B, rows)).value, expected, rtol=1e-5
  )


def test_non_stop_and_exponential_by_hand(rows):
  found = shaping.NonStop()(CreditContext(rows.rewards['a'], rows)).value
  np.testing.assert_array_equal(found, [1.0, 3.0, -10.0, 9.0])
  # A response that continues in the next iteration has not reached its limit.
  waits = rows.replace(extras={'waits_B': np.array([0.0, 0, 1, 0])})
  found = shaping.NonStop()(CreditContext(rows.rewards['a'], waits)).value
  np.testing.assert_array_equal(found, rows.rewards['a'])
  rate = np.array([0.0, 0.5, 1.0])
  best = shaping.Exponential()(CreditContext(rate, None)).value
  np.testing.assert_allclose(best, np.exp([-10, -5, 0]), rtol=1e-5)
  worst = shaping.Exponential(t=-10.0)(CreditContext(rate, None)).value
  np.testing.assert_allclose(worst, -np.exp([0, -5, -10]), rtol=1e-5)


def test_geometric_mean_by_hand(rows):
  """sqrt(1 * 2), sqrt(3 * 1); 0 of one welfare leaves sqrt(eps * 2)."""
  piece = shaping.CobbDouglas(components=('a', 'b'), eps=1e-4)
  found = piece(CreditContext(None, rows)).value
  expected = np.sqrt([1.0001 * 2.0001, 3.0001 * 1.0001, 1e-4 * 2.0001])
  np.testing.assert_allclose(found[:3], expected, rtol=1e-5)
  pair = {'a': np.array([0.8, 0.65] * 2), 'b': np.array([0.5, 0.65] * 2)}
  exact = shaping.CobbDouglas(components=('a', 'b'), eps=0.0)
  found = exact(CreditContext(None, rows.replace(rewards=pair))).value
  np.testing.assert_allclose(found[:2], [0.632456, 0.65], rtol=1e-5)
  single = shaping.CobbDouglas(components=('a',), eps=0.0)
  np.testing.assert_array_equal(
    single(CreditContext(None, rows)).value, REWARDS['a']
  )
  turned = shaping.CobbDouglas(components=('b', 'a'))(
    CreditContext(None, rows)
  ).value
  np.testing.assert_array_equal(turned, piece(CreditContext(None, rows)).value)


def test_gated_sum_by_hand(rows):
  """a + 0.5 sigmoid(b); rows with a < 1 are blocked."""
  names = {'components': ('a', 'b'), 'weights': (1.0, 0.5)}
  plain = shaping.GatedSum(**names)(CreditContext(rows.reward_B, rows)).value
  np.testing.assert_allclose(plain[:3], [2.0, 3.5, 1.0])
  gated = shaping.GatedSum(
    **names, logits=('b',), gate='a', threshold=1.0, blocked=-1.0
  )

  def sigmoid(x):
    return 1 / (1 + np.exp(-x))

  expected = [1 + 0.5 * sigmoid(2.0), 3 + 0.5 * sigmoid(1.0), -1.0]
  np.testing.assert_allclose(
    gated(CreditContext(rows.reward_B, rows)).value[:3], expected, rtol=1e-6
  )
  one = shaping.GatedSum(components=('a',), weights=(1.0,))
  np.testing.assert_array_equal(
    one(CreditContext(rows.reward_B, rows)).value, REWARDS['a']
  )
  with pytest.raises(ValueError, match='GatedSum.weights = '):
    shaping.GatedSum(components=('a',))
  with pytest.raises(ValueError, match='GatedSum.logits = '):
    shaping.GatedSum(logits=('a',))


def test_a_sum_of_three_rewards(rows):
  """RLUF: 2 of helpfulness, 0.5 sigmoid(love), 3 sigmoid(safe) by hand; E0
  without the third, and in any order up to rounding (E1).
  """
  love_B, safe_B = np.log([3.0, 1.0, 1.0, 1.0]), np.log([1.0, 4.0, 1.0, 1.0])
  rows = rows.replace(rewards={**rows.rewards, 'love': love_B, 'safe': safe_B})

  def total(names, weights):
    logits = tuple({*names} - {'a'})
    piece = shaping.GatedSum(components=names, weights=weights, logits=logits)
    return piece(CreditContext(rows.reward_B, rows)).value

  found = total(('a', 'love', 'safe'), (2.0, 0.5, 3.0))
  expected = 2 * REWARDS['a'][:2] + [0.375 + 1.5, 0.25 + 2.4]
  np.testing.assert_allclose(found[:2], expected, rtol=1e-6)
  np.testing.assert_array_equal(
    total(('a', 'love', 'safe'), (2.0, 0.5, 0.0)),
    total(('a', 'love'), (2.0, 0.5)),
  )
  np.testing.assert_allclose(
    total(('safe', 'love', 'a'), (3.0, 0.5, 2.0)), found, rtol=1e-5
  )


def test_thresholds_of_overlap_harden(rows):
  """Overlaps 0.4, 0.6, 0.8: T = 0, 0.6, 1, then with 0.75 and 0.9 0, 0, 0.8.
  The second stage begins at rollout 1."""
  piece = shaping.OverlapStages(switch=1)
  rows = rows.replace(extras={'iou_B': np.array([0.4, 0.6, 0.8, 1.0])})
  reward_B = np.full(4, 0.5, np.float32)
  found, state = piece(CreditContext(reward_B, rows, piece.init(1)))
  np.testing.assert_allclose(found - 0.5, [0, 0.6 + 1, 1 + 1, 2], rtol=1e-6)
  found, _ = piece(CreditContext(reward_B, rows, state))
  np.testing.assert_allclose(found - 0.5, [0, 0, 0.8 + 1, 2], rtol=1e-6)
  # Equal thresholds of both stages: nothing changes.
  same = piece.replace(later_low=0.5, later_high=0.75)
  np.testing.assert_array_equal(
    *(same(CreditContext(reward_B, rows, s))[0] for s in (piece.init(1), state))
  )


def test_what_is_missing_is_named(rows):
  with pytest.raises(ValueError, match="Ensemble.components = .*are .'a', 'b'"):
    shaping.Ensemble(components=('c',))(CreditContext(None, rows))
  with pytest.raises(ValueError, match='ComponentScale.weights = '):
    credit.ComponentScale(components=('a',))
  with pytest.raises(ValueError, match='Exponential.t = 0'):
    shaping.Exponential(t=0.0).check(CheckContext())
