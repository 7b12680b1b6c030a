"""Scores and losses of scalar reward models."""

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import CreditContext, LossContext
from rl_jax.types import Edges

MASK = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 0]])
# After every token; only that after the last trained one is a score.
VALUES = np.array([[9.0, 2, 9], [9, 9, 1], [-1, 9, 9], [9, 1, 9]])


def pairs(toy, **fields):
  """Two pairs, the first row of each wins: scores (2, 1) and (-1, 1)."""
  pair_N1 = np.zeros((2, 1), np.int32)
  ones_N1 = np.ones((2, 1), np.float32)
  edges = Edges(
    win_NE=pair_N1,
    lose_NE=pair_N1 + 1,
    weight_NE=ones_N1,
    margin_NE=0 * ones_N1,
  )
  traj = toy.trajectories(MASK, group_size=2, edges=edges, **fields)
  stats = {'logp': 0.0 * MASK, 'values_after': VALUES}
  return traj, jax.tree.map(np.float32, stats)


def evaluate(loss, traj, stats):
  value, metrics, _ = loss(
    LossContext({k: jax.numpy.asarray(x) for k, x in stats.items()}, traj, None)
  )
  return float(value), metrics


def test_score_is_the_value_behind_the_last_trained_token(toy):
  """A token of the environment at the end is not trained, so it is passed."""
  traj, stats = pairs(toy)
  found = pref.FinalValue()(LossContext(stats, traj))
  np.testing.assert_array_equal(found, [2.0, 1.0, -1.0, 1.0])
  mask = MASK.copy()
  mask[1] = [1, 1, 0]
  traj, stats = toy.trajectories(mask, group_size=2), stats
  np.testing.assert_array_equal(
    pref.FinalValue()(LossContext(stats, traj))[1], 9.0
  )


def test_bradley_terry_by_hand(toy):
  """-ls(1) = 0.313262 and -ls(-2) = 2.126928; half of the pairs are right."""
  traj, stats = pairs(toy)
  loss = pref.PairLoss(score=pref.FinalValue(), link=pref.Sigmoid())
  value, metrics = evaluate(loss, traj, stats)
  assert value == pytest.approx((0.313262 + 2.126928) / 2, abs=1e-6)
  assert metrics['preference/accuracy'] == 0.5


def test_centering_by_hand(toy):
  """((2 + 1)^2 + (-1 + 1)^2) / 2 at coefficient 0.01."""
  traj, stats = pairs(toy)
  loss = pref.CenteredScores(score=pref.FinalValue())
  assert evaluate(loss, traj, stats)[0] == pytest.approx(0.045)


def test_only_centering_sees_a_number_added_to_all_scores(toy):
  """E1: comparisons fix scores up to a number of each prompt."""
  traj, stats = pairs(toy)
  moved = stats | {'values_after': stats['values_after'] + 3}
  loss = pref.PairLoss(score=pref.FinalValue(), link=pref.Sigmoid())
  center = pref.CenteredScores(score=pref.FinalValue())
  assert evaluate(loss, traj, moved)[0] == pytest.approx(
    evaluate(loss, traj, stats)[0], abs=1e-6
  )
  assert evaluate(center, traj, moved)[0] == pytest.approx(0.01 * (81 + 36) / 2)


@pytest.mark.parametrize(
  'variant, second', [('margin', 1.910224), ('flipped', 0.126928)]
)
def test_scores_that_contradict_a_label(variant, second, toy):
  """Margins 0.5 and -0.25 keep their labels: -ls(1 - 0.5) = 0.474077, and
  -ls(-2 + 0.25). Or the second pair is turned round: -ls(1) and -ls(2)."""
  method = configuration.load_method(f'reward_model@{variant}')
  chosen = {'chosen_B': np.float32([1, 0, 1, 0])}
  traj, stats = pairs(toy, extras=chosen)
  reward_B = np.float32([0.7, 0.2, 0.0, 0.25])
  traj = traj.replace(edges=method.pairs(CreditContext(reward_B, traj)).value)
  flipped = variant == 'flipped'
  assert traj.edges.win_NE.tolist() == [[0], [int(flipped)]]
  loss = 2 * evaluate(method.losses[0], traj, stats)[0]
  first = 0.313262 if flipped else 0.474077
  assert loss == pytest.approx(first + second, abs=2e-6)


def test_negative_margin_of_the_digest(toy):
  """d = 1 and mu = -0.5: -ls(1.5) = 0.201413."""
  traj, stats = pairs(toy, extras={'chosen_B': np.float32([1, 0, -1, -1])})
  edges = pref.GivenMargin()(
    CreditContext(np.float32([0.0, 0.5, 9, 9]), traj)
  ).value
  np.testing.assert_array_equal(edges.weight_NE, [[1.0], [0.0]])
  loss = pref.PairLoss(score=pref.FinalValue(), link=pref.Sigmoid())
  value, _ = evaluate(loss, traj.replace(edges=edges), stats)
  assert value == pytest.approx(0.201413, abs=1e-6)
  plain = pref.GivenMargin(scale=0.0)(
    CreditContext(np.float32([0.0, 0.5, 9, 9]), traj)
  ).value
  given = pref.RecordedPairs()(CreditContext(None, traj)).value
  np.testing.assert_array_equal(plain.margin_NE, given.margin_NE)


def test_rankings_are_all_their_pairs(toy):
  """Scores (2, 1, 0, -1): 0.2070 over six pairs; of two it is one pair's."""
  method = configuration.load_method('reward_model@rankings')
  assert len(method.losses) == 1
  values = np.float32([[2], [1], [0], [-1]]) + 5  # a number added to all
  stats = {'logp': 0 * values, 'values_after': values}
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)
  traj = traj.replace(
    edges=method.pairs(CreditContext(np.float32([9, 4, 3, 0]), traj)).value
  )
  value, metrics = evaluate(method.losses[0], traj, stats)
  assert value == pytest.approx(0.2070, abs=5e-5)
  assert metrics['preference/accuracy'] == 1.0
  pair = toy.trajectories(np.ones((2, 1)), group_size=2)
  pair = pair.replace(
    edges=method.pairs(CreditContext(np.float32([9, 4]), pair)).value
  )
  stats = {name: x[:2] for name, x in stats.items()}
  value, _ = evaluate(method.losses[0], pair, stats)
  assert value == pytest.approx(0.3133, abs=5e-5)
