"""GDPO: components on their own scales, and the sum whitened over tokens."""

import dataclasses

import numpy as np

from rl_jax.pieces import credit

LOGP = np.full((4, 2), -1.0)
OUTCOME = np.array([1.0, 1.0, 0.0, 0.0])
FORMAT = np.array([1.0, 0.0, 0.0, 0.0])


def push(toy, method=None, outcome=OUTCOME, format_=FORMAT, **fields):
  """-dL/dlogp on four rows of two tokens."""
  return toy.push(
    toy.get_method('gdpo') if method is None else method,
    LOGP,
    **{'group_size': 4, 'reward_B': outcome, **fields},
    rewards={'outcome': outcome, 'format': format_},
  )


def test_by_hand(toy):
  """Outcome: mean 1/2, std 1 / sqrt 3, so +-.866025. Format: mean 1/4, std
  1/2, so 1.5 and -.5. Sums s 2.366025, .366025, -1.366025 twice, of mean 0.
  Sum of s^2 over eight tokens 2 (6 + 2 sqrt 3) = 18.928203; by 7 the variance
  2.704029, root 1.644393. A = s / 1.644393, over eight tokens."""
  row = np.array([1.438844, 0.222590, -0.830717, -0.830717]) / 8
  np.testing.assert_allclose(push(toy), np.stack([row, row], 1), rtol=1e-5)


def test_long_rows_count_more_in_the_whitening(toy):
  """Without the last token seven are left: the mean is 1.366025 / 7 = .195146,
  the sum of squares 18.928203 - 1.866025 - 7 (.195146)^2 = 16.795603, by 6
  2.799267, root 1.673101: A = 1.297518 in the first row, by two tokens of four
  rows, and -.933101 in the last two, which have the same weight each."""
  mask = np.array([[1.0, 1], [1, 1], [1, 1], [1, 0]])
  found = push(toy, mask_BT=mask)
  np.testing.assert_allclose(found[0], [1.297518 / 8] * 2, rtol=1e-5)
  last = -(1.366025 + 0.195146) / 1.673101
  np.testing.assert_allclose(found[2:].sum(1), [last / 4] * 2, rtol=1e-5)


def test_of_one_component_is_reinforce_baseline_of_scaled_rewards(toy):
  """E1: GroupCenter, GroupScale and Whiten; a component that does not vary
  adds nothing."""
  base = toy.get_method('reinforce_plus_plus_baseline')
  center, whiten = base.credit
  scaled = dataclasses.replace(
    base, credit=(center, credit.GroupScale(), whiten)
  )
  found = push(toy, format_=np.ones(4))
  np.testing.assert_allclose(found, push(toy, scaled), rtol=1e-5)
  assert np.abs(found).max() > 0


def test_units_do_not_count(toy):
  """E1: of the format, and a constant added to it."""
  moved = push(toy, format_=30.0 * FORMAT - 7.0)
  np.testing.assert_allclose(moved, push(toy), rtol=1e-4)


def test_nothing_to_compare_is_zero(toy):
  """Equal rewards, a group of one valid row, groups of one, no valid row."""
  ones = np.ones(4)
  alone = np.array([1.0, 0, 0, 0])
  for fields in (
    {'outcome': 0.7 * ones, 'format_': 0.1 * ones},
    {'valid_B': alone, 'weight_B': alone},
    {'group_size': 1},
    {'valid_B': 0 * ones, 'weight_B': 0 * ones},
  ):
    np.testing.assert_array_equal(push(toy, **fields), 0.0)


def test_invalid_rows_do_not_count(toy):
  """E1: whatever their rewards are; the other three are a group of three."""
  live = np.array([1.0, 1, 1, 0])
  fields = {'valid_B': live, 'weight_B': live}
  found = push(toy, **fields)
  other = push(toy, outcome=np.array([1.0, 1, 0, 90]), **fields)
  np.testing.assert_array_equal(found, other)
  assert (found[3] == 0).all() and np.abs(found[:3]).min() > 0
