"""XRPO's allocation: priorities by hand, plans, and groups with gaps."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.join import join_chunks
from rl_jax.rollouts.wrappers import uncertainty_allocation
from rl_jax.rollouts.wrappers.solved_seeds import SolvedSeeds
from rl_jax.rollouts.wrappers.uncertainty_allocation import (
  UncertaintyAllocation,
)

NONE = [np.nan] * 2


def test_priority_by_hand():
  """Rewards 1, 0, 0, 1: s .57735, h(4) .91869, h(5) .71688, so D .20182; the
  bonus after 10 samples is sqrt(log 11 / 4) = .77426."""
  piece = UncertaintyAllocation(coef=0.0)
  four, s = np.array([4]), np.array([3**-0.5])
  np.testing.assert_allclose(piece.half_width(four, s), 0.91869, rtol=1e-5)
  np.testing.assert_allclose(piece.half_width(four + 1, s), 0.71688, rtol=1e-5)
  np.testing.assert_allclose(piece.priority(four, s, 10, 1), 0.20182, atol=1e-5)
  some = UncertaintyAllocation(coef=2.0)
  np.testing.assert_allclose(
    some.priority(four, 0 * s, 10, 1), 2 * 0.77426, rtol=1e-5
  )


def test_plan_by_hand():
  """Prompts 0 and 2 have no spread. Without a bonus the first chunk goes to
  prompt 1; with 4 samples its gain is .88 - .53, still above 0."""
  reward = np.array([[1, 1, *NONE], [1, 0, *NONE], [0, 0, *NONE]])
  none = np.zeros(3, int)
  piece = UncertaintyAllocation(coef=0.0, most=2)
  assert piece.plan(reward, none, 2).tolist() == [0, 1, 1]
  piece = UncertaintyAllocation(coef=0.0, most=3)
  assert piece.plan(reward, none, 2).tolist() == [1, 1, 1]
  # By the bonus only, each chunk goes where there are fewest samples.
  piece = UncertaintyAllocation(coef=1e3, most=3)
  assert piece.plan(reward, none, 2).tolist() == [0, 1, 2]
  assert piece.plan(reward, np.array([3, 0, 3]), 2).tolist() == [1, 1, 1]


def test_failed_verifications_are_no_samples():
  """Prompt 0 has one reward, prompt 1 two of the same: neither has a spread,
  and the bonus prefers the one with fewer."""
  reward = np.array([[1, *NONE], [1, 1, np.nan]])
  piece = UncertaintyAllocation(coef=1.0, most=2)
  assert piece.plan(reward, np.zeros(2, int), 1)[0] == 0


def test_seeded_prompts_have_a_chunk_before_all_others():
  """Prompt 2 has no spread, and the bonus is 0: else it had none."""
  reward = np.array([[1, 1, *NONE], [1, 0, *NONE], [0, 0, *NONE]])
  piece = UncertaintyAllocation(coef=0.0, most=3)
  assert piece.plan(reward, np.zeros(3, int), 2, {2: 0}).tolist() == [1, 1, 2]


def spread(shares, left=9, count=None):
  """The chunks of prompts of which these shares of four rewards are right."""
  reward = np.array(
    [[float(i < 4 * share) for i in range(4)] for share in shares]
  )
  count = len(shares) if count is None else count
  left_N = np.full(len(shares), left)
  return uncertainty_allocation.spread_chunks(reward, left_N, count).tolist()


def test_chunks_by_spread_by_hand():
  """Spreads .5, .433, .433 of 1.366: 3.66, 3.17, 3.17 of ten; of three 1.10,
  .95, .95; prompts without a spread get none.
  """
  assert spread([0.5, 0.25, 0.75], count=10) == [4, 3, 3]
  assert spread([0.5, 0.25, 0.75]) == [1, 1, 1]
  assert spread([0.0, 0.5, 1.0]) == [0, 3, 0]
  assert spread([0.0, 0.5, 1.0, 0.25]) == [0, 2, 0, 2]


def test_a_prompt_takes_its_most_and_the_rest_is_shared():
  assert spread([0.0, 0.5, 1.0], left=2) == [1, 2, 0]
  assert spread([0.0, 0.5, 1.0, 0.25], left=1) == [1, 1, 1, 1]


@pytest.mark.parametrize('share', [0.0, 0.25, 0.5])
def test_equal_spreads_are_grpo(share):
  """The reduction: as many samples for every prompt."""
  assert spread([share] * 4) == [1, 1, 1, 1]


def test_the_rule_plans_by_spread_after_seeds():
  """Invariance: right and wrong may change places."""
  piece = UncertaintyAllocation(rule='spread')
  reward = np.array([[1.0, 1, *NONE], [1, 0, *NONE], [0, 0, *NONE]])
  none = np.zeros(3, int)
  assert piece.plan(reward, none, 2).tolist() == [1, 1, 1]
  assert piece.plan(1 - reward, none, 2).tolist() == [1, 1, 1]
  assert piece.plan(reward, none, 2, {2: 0}).tolist() == [1, 1, 2]
  assert piece.plan(reward, np.array([0, 2, 0]), 2).tolist() == [0, 1, 2]


class Rounds:
  """Rounds of one chunk for each prompt that is asked for."""

  def __init__(self, toy):
    self.toy, self.asked = toy, []

  def run(self, function, *arrays):
    """Eagerly."""
    return function(*arrays)

  def sample(self, examples, indices):
    """Rows that hold ten times the prompt's number, and their place."""
    self.asked.append(list(examples))
    N = len(examples)
    value = np.repeat([10.0 * e for e in examples], 2) + np.tile([1, 2], N)
    traj = rows(self.toy, value)
    found = types.SimpleNamespace(reward_NG=np.zeros((N, 2)), indices=indices)
    return traj, found


def rows(toy, value):
  """Groups of two rows of two tokens with this reward."""
  return toy.trajectories(
    np.ones((len(value), 2)),
    group_size=2,
    reward_B=value,
    rewards={'outcome': value},
    logp_behaviour_BT=-np.ones((len(value), 2)),
  )


def test_groups_with_gaps(toy):
  """Prompt 0 has no spread, prompt 1 gets both chunks."""
  first = rows(toy, np.array([7.0, 7.0, 8.0, 9.0]))
  done = types.SimpleNamespace(
    examples=[0, 1],
    indices=np.array([5, 6]),
    reward_NG=np.array([[0.0, 0.0], [0.0, 1.0]]),
  )
  sampler = Rounds(toy)
  piece = UncertaintyAllocation(coef=0.0, most=2)
  traj, (found,) = piece.extend(first, done, sampler)
  assert sampler.asked == [[1, 1]] and found.indices.tolist() == [6, 6]
  assert (traj.num_prompts, traj.group_size) == (2, 6)
  live = np.repeat([1, 0, 0, 1, 1, 1], 2)
  np.testing.assert_array_equal(traj.valid_B, live)
  np.testing.assert_array_equal(traj.weight_B, live)
  np.testing.assert_array_equal(traj.mask_BT, np.stack([live] * 2, 1))
  np.testing.assert_array_equal(traj.logp_behaviour_BT, -traj.mask_BT)
  np.testing.assert_array_equal(
    np.asarray(traj.reward_B)[live > 0], [7, 7, 8, 9, 11, 12, 11, 12]
  )
  np.testing.assert_array_equal(traj.prompt_id_N, first.prompt_id_N)


def test_a_chunk_for_each_prompt_is_a_larger_group(toy):
  """E0: GRPO with groups of four."""
  first = rows(toy, np.array([1.0, 2.0, 3.0, 4.0]))
  more = rows(toy, np.array([5.0, 6.0, 7.0, 8.0]))
  found = join_chunks(first, (more,), jnp.array([[0], [1]]))
  np.testing.assert_array_equal(found.reward_B, [1, 2, 5, 6, 3, 4, 7, 8])
  assert found.valid_B.all() and found.group_size == 4


class Seeds(SolvedSeeds):
  """Prompt 1, seeded, is the number 3."""

  def remember(self, done, sampler):
    """Nothing."""

  def examples(self, done, sampler):
    """By place."""
    return {1: 3}


def test_seeded_rows_join_under_the_prompt_without_examples(toy):
  """Only the first chunk of prompt 1, and only it is foreign."""
  first = rows(toy, np.array([7.0, 8.0, 9.0, 9.0]))
  done = types.SimpleNamespace(
    examples=[0, 1],
    indices=np.array([5, 6]),
    reward_NG=np.array([[0.0, 1.0], [0.0, 0.0]]),
  )
  sampler = Rounds(toy)
  piece = UncertaintyAllocation(coef=0.0, most=2, rounds=2, seeds=Seeds())
  traj, found = piece.extend(first, done, sampler)
  assert sampler.asked[0] == [0, 3] and 3 not in sampler.asked[1]
  assert found[0].indices.tolist() == [5, 6]
  np.testing.assert_array_equal(
    traj.extras['foreign_B'], np.repeat([0, 0, 0, 0, 1, 0], 2)
  )
  np.testing.assert_array_equal(np.asarray(traj.reward_B)[6:10], [9, 9, 31, 32])
  np.testing.assert_array_equal(traj.prompt_NP, first.prompt_NP)


def test_longer_prompts_of_chunks_are_not_kept(toy):
  """E0: the group has the prompts of its first samples, at their width."""
  first = rows(toy, np.array([1.0, 2.0]))
  more = rows(toy, np.array([3.0, 4.0]))
  wide = more.replace(
    prompt_NP=jnp.full((1, 5), 9), prompt_mask_NP=jnp.ones((1, 5))
  )
  found = join_chunks(first, (wide,), jnp.array([[0]]))
  same = join_chunks(first, (more,), jnp.array([[0]]))
  for name in ('prompt_NP', 'prompt_mask_NP', 'reward_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(same, name))


def test_settings_are_checked():
  with pytest.raises(ValueError, match='most = 1 chunks'):
    UncertaintyAllocation(rounds=2, most=1).check(
      CheckContext(rollout=types.SimpleNamespace(group_size=4))
    )
  with pytest.raises(ValueError, match='group_size >= 2'):
    UncertaintyAllocation().check(
      CheckContext(rollout=types.SimpleNamespace(group_size=1))
    )


def test_deviations_by_hand():
  """Half right: norms 2 of right and 1 of wrong samples give
  1/8 4 + 1/8 1 - 1/16 1 = 9/16; a quarter right with norms 2, 1: .75^2 .25 4
  + .25^2 .75 1 - (.1875)^2.
  """
  reward = np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1]])
  norm = np.where(reward > 0.5, 2.0, 1.0)
  found = uncertainty_allocation.deviations(reward, norm)
  square = 0.75**2 * 0.25 * 4 + 0.25**2 * 0.75 - 0.1875**2
  np.testing.assert_allclose(found, [0.75, square**0.5, 0.0], rtol=1e-6)


def test_norms_of_one_are_the_spread_without_norms():
  """E1; unknown rewards and their norms count nowhere, and the scale of the
  norms changes no share.
  """
  reward = np.array([[1.0, 0, np.nan, 0], [1, 1, 0, np.nan], [0, 0, 1, 1]])
  plain = uncertainty_allocation.deviations(reward)
  ones = np.where(np.isfinite(reward), 1.0, np.nan)
  found = uncertainty_allocation.deviations(reward, ones)
  np.testing.assert_allclose(found, plain, rtol=1e-6)
  np.testing.assert_allclose(
    uncertainty_allocation.deviations(reward, 3 * ones), 3 * plain, rtol=1e-6
  )


def test_larger_gradients_have_more_chunks():
  reward = np.array([[1.0, 0, 1, 0], [1, 0, 1, 0]])
  norm = np.array([[3.0] * 4, [1.0] * 4])
  left = np.full(2, 9)
  found = uncertainty_allocation.spread_chunks(reward, left, 4, norm)
  assert found.tolist() == [3, 1]


@pytest.mark.parametrize('more', [{}, {'rule': 'spread', 'rounds': 2}])
def test_norms_are_of_one_round_by_spread(more):
  piece = UncertaintyAllocation(norms=True, **more)
  with pytest.raises(ValueError, match='norms of gradients are'):
    piece.check(CheckContext(rollout=types.SimpleNamespace(group_size=4)))


def test_the_measured_norms_choose_the_prompts(toy):
  """Prompt 0 and 1 have one right sample of two; the first moves the
  embeddings three times as far, and gets both chunks.
  """
  asked = []

  class Sampler:
    def gradient_norms(self, traj):
      return np.array([9.0, 9.0, 1.0, 1.0])

    def sample(self, examples, indices):
      asked.extend(examples)
      found = types.SimpleNamespace(reward_NG=np.zeros((2, 2)))
      return toy.trajectories(np.ones((4, 2)), group_size=2), found

    def run(self, function, *arrays):
      return function(*arrays)

  done = types.SimpleNamespace(
    reward_NG=np.array([[1.0, 0.0], [0.0, 1.0]]),
    examples=['a', 'b'],
    indices=np.arange(2),
  )
  traj = toy.trajectories(np.ones((4, 2)), group_size=2)
  for norms, expected in ((True, ['a', 'a']), (False, ['a', 'b'])):
    asked.clear()
    piece = UncertaintyAllocation(rule='spread', norms=norms)
    joined, rounds = piece.extend(traj, done, Sampler())
    assert asked == expected
    assert joined.group_size == 8 and len(rounds) == 1
