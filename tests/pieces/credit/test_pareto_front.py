"""Samples that no other one of the group dominates."""

import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

# Of a and b: the first three are on the front, the last is below all of them.
REWARDS = {'a': np.array([3.0, 1.0, 2.0, 1.0]), 'b': np.array([1.0, 3, 2, 1])}
CREDIT = np.array([1.0, -2.0, 3.0, 4.0], np.float32)


def front(toy, rewards=REWARDS, names=('a', 'b'), valid=None):
  valid = np.ones(4) if valid is None else np.asarray(valid, np.float32)
  rows = toy.trajectories(
    np.ones((4, 1)), group_size=4, rewards=rewards, valid_B=valid
  )
  return np.asarray(
    credit.ParetoFront(components=names)(CreditContext(CREDIT + 0, rows)).value
  )


def test_by_hand(toy):
  """4 rows over 3 of the front."""
  np.testing.assert_allclose(front(toy), CREDIT * [4 / 3, 4 / 3, 4 / 3, 0])
  # Without the first row; the last is as good in b as nobody.
  found = front(toy, valid=[0, 1, 1, 1])
  np.testing.assert_allclose(found, CREDIT * [0, 3 / 2, 3 / 2, 0])


def test_one_component_keeps_the_best(toy):
  """Equal rows do not dominate each other."""
  np.testing.assert_allclose(front(toy, names=('a',)), CREDIT * [4, 0, 0, 0])
  same = {name: np.ones(4) for name in REWARDS}
  np.testing.assert_array_equal(front(toy, same), CREDIT)


def test_only_the_order_counts(toy):
  """E0: rising maps of each component."""
  bent = {'a': np.exp(REWARDS['a']), 'b': REWARDS['b'] ** 3}
  np.testing.assert_array_equal(front(toy, bent), front(toy))


@pytest.mark.parametrize('size', [1, 2, 4])
def test_the_front_of_a_batch_knows_no_groups(toy, size):
  """E1: the first three rows, whichever prompts they answer.

  Of the groups [0, 1] and [2, 3] all but the last row are on the front; with
  one row a group nothing is dominated inside it.
  """
  traj = toy.trajectories(np.ones((4, 1)), group_size=size, rewards=REWARDS)
  fields = {'components': ('a', 'b')}
  found = credit.ParetoFront(over='batch', **fields)(
    CreditContext(CREDIT + 0, traj)
  ).value
  np.testing.assert_allclose(found, CREDIT * [4 / 3, 4 / 3, 4 / 3, 0])
  groups = credit.ParetoFront(**fields)(CreditContext(CREDIT + 0, traj)).value
  factor = {1: [1, 1, 1, 1], 2: [1, 1, 2, 0], 4: [4 / 3, 4 / 3, 4 / 3, 0]}
  np.testing.assert_allclose(groups, CREDIT * factor[size])


def test_one_component_keeps_the_best_of_the_batch(toy):
  """E1: the spec's check, over two groups."""
  traj = toy.trajectories(np.ones((4, 1)), group_size=2, rewards=REWARDS)
  piece = credit.ParetoFront(components=('a',), over='batch')
  np.testing.assert_allclose(
    piece(CreditContext(CREDIT + 0, traj)).value, CREDIT * [4, 0, 0, 0]
  )


def test_parrot_by_hand(toy):
  """E1: components standardised over the batch, then its front.

  a = (3, 1, 2, 1): mean 1.75, deviation .9574; b the same in another order.
  """
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=2,
    rewards={'outcome': REWARDS['a'], 'format': REWARDS['b']},
  )
  found = np.zeros(4, np.float32)
  for piece in toy.get_method('parrot').credit:
    found = piece(CreditContext(found, traj)).value
  a, b = REWARDS['a'], REWARDS['b']
  scaled = (a - 1.75) / a.std(ddof=1) + (b - 1.75) / b.std(ddof=1)
  expected = scaled * [4 / 3, 4 / 3, 4 / 3, 0]
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_missing_components_are_named(toy):
  with pytest.raises(ValueError, match='ParetoFront.components'):
    front(toy, names=('a', 'c'))
