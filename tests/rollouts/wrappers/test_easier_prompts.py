"""Hints for prompts that are harder than the mean."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from experiments.reports import influence_run
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.wrappers.easier_prompts import (
  EasierPrompts,
  RewardWindow,
  in_their_place,
)
from rl_jax.worlds import Arithmetic, Bandit, Chain


@pytest.mark.parametrize(
  ('margin', 'expected'),
  [
    (0.0, [True, False, False, True]),  # the mean of seven rewards is 3 / 7
    (0.3, [True, False, False, False]),
    (0.5, [False] * 4),
  ],
)
def test_hard_prompts_by_hand(margin, expected):
  """Means 0, 1, 1/2, 0 + and nothing known of a reward that is NaN."""
  rewards = [[0, 0], [1, np.nan], [0.5, 0.5], [0.5, 0.1], [np.nan, np.nan]]
  piece = EasierPrompts(margin=margin)
  found = piece._hard(*piece._delta(np.array(rewards), RewardWindow(1)))
  # 2.6 / 7 = .371: away by .371, -.629, -.129 and .071.
  assert found.tolist() == [*expected, False]


def test_a_window_by_hand():
  """Two rewards of mean 1, four of mean 1/2 and two of mean 0: against the
  last two rollouts, 4 / 6 and 2 / 6; the third is measured against 1 / 3."""
  piece, window = EasierPrompts(window=2), RewardWindow(2)
  rewards = ([[1, 1]], [[1, 0], [0, 1]], [[0, 0], [np.nan, np.nan]])
  deltas = ([0.0], [1 / 6, 1 / 6], [1 / 3, -np.inf])
  means = (1.0, 4 / 6, 1 / 3)
  for reward, delta, mean in zip(rewards, deltas, means, strict=True):
    found_N, found = piece._delta(np.array(reward, float), window)
    np.testing.assert_allclose(found_N, delta, rtol=1e-6)
    assert found == pytest.approx(mean)
  again = RewardWindow(2)
  again.state = window.state
  assert again.add(3.0, 1) == window.add(3.0, 1) == 1.0  # of 3 and two 0
  assert RewardWindow(3).add(0.0, 0) == 0.0


def test_graded_hints_by_hand():
  """Means 0, 1, 1/4 and nothing known of the last; their mean is 5 / 12: Delta
  5 / 12, -7 / 12 and 1 / 6 are 1, 0 and .4 of it."""
  rewards = np.array([[0, 0], [1, 1], [0, 0.5], [np.nan, np.nan]])
  piece = EasierPrompts(graded=True)

  def shares(x):
    return piece._shares(*piece._delta(x, RewardWindow(1)))

  found = shares(rewards)
  np.testing.assert_allclose(found, [1, 0, 0.4, 0], rtol=1e-6)
  # Units of the reward change nothing; with penalties hints are whole.
  np.testing.assert_allclose(shares(10 * rewards), found, rtol=1e-6)
  lost = shares(rewards - 2)
  np.testing.assert_array_equal(lost, [1, 0, 1, 0])


def test_graded_hints_are_given(toy):
  """The task writes them by the shares; the rounds see the changed examples."""
  asked = []

  class Sampler:
    """Keeps what it is asked for."""

    task = types.SimpleNamespace(hinted_by=lambda example, share: share)
    fits = staticmethod(lambda example: True)
    memory = RewardWindow(1)

    def sample(self, examples, indices):
      """Other rows."""
      asked.extend(examples)
      return rows.replace(reward_B=rows.reward_B + 1), 'round'

    def run(self, function, *arrays):
      """Eagerly."""
      return function(*arrays)

  rows = toy.trajectories(np.ones((4, 2)), group_size=2, rewards={})
  reward_NG = np.array([[1.0, 1.0], [0.0, 0.5]])
  done = types.SimpleNamespace(
    examples=['a', 'b'], indices=None, reward_NG=reward_NG
  )
  found, rounds = EasierPrompts(graded=True).extend(rows, done, Sampler())
  # The mean is 5 / 8, Delta of the second 3 / 8.
  np.testing.assert_allclose(asked, [0, 0.6], rtol=1e-6)
  assert rounds == ['round']
  np.testing.assert_array_equal(found.reward_B, [0, 0, 1, 1])


@pytest.mark.parametrize('reward', [0.25, 0.1])
def test_equal_prompts_are_left_alone(reward):
  """Also where their mean is rounded."""
  piece = EasierPrompts()
  delta = piece._delta(np.full((3, 4), reward), RewardWindow(1))
  assert not piece._hard(*delta).any()


def test_new_groups_take_the_place_of_the_old(toy):
  """Prompt, tokens and rewards of group 1 only; its rows are foreign."""
  plain = toy.trajectories(
    np.ones((4, 2)), group_size=2, reward_B=np.zeros(4), rewards={}
  )
  hinted = plain.replace(
    prompt_NP=plain.prompt_NP + 5,
    response_BT=plain.response_BT + 7,
    reward_B=plain.reward_B + 1,
  )
  rows = in_their_place(plain, hinted, jnp.array([False, True]))
  np.testing.assert_array_equal(rows.prompt_NP, [[1, 1], [6, 6]])
  np.testing.assert_array_equal(rows.response_BT[:, 0], [1, 1, 8, 8])
  np.testing.assert_array_equal(rows.reward_B, [0, 0, 1, 1])
  np.testing.assert_array_equal(rows.extras['foreign_B'], [0, 0, 1, 1])
  same = in_their_place(plain, hinted, jnp.array([False, False]))
  np.testing.assert_array_equal(same.response_BT, plain.response_BT)
  np.testing.assert_array_equal(same.prompt_NP, plain.prompt_NP)


def test_hints_may_need_a_wider_bucket(toy):
  """Prompts of groups without one are padded on the left."""
  plain = toy.trajectories(
    np.ones((4, 2)), group_size=2, reward_B=np.zeros(4), rewards={}
  )

  def wide(x):
    return jnp.pad(x, ((0, 0), (3, 0)), constant_values=1)

  hinted = plain.replace(
    prompt_NP=wide(plain.prompt_NP), prompt_mask_NP=wide(plain.prompt_mask_NP)
  )
  rows = in_their_place(plain, hinted, jnp.array([False, True]))
  pad = jnp.zeros((1, 3))
  for name in ('prompt_NP', 'prompt_mask_NP'):
    old = jnp.concatenate([pad, getattr(plain, name)[:1]], axis=1)
    both = jnp.concatenate([old, getattr(hinted, name)[1:]])
    np.testing.assert_array_equal(getattr(rows, name), both)


def test_a_task_without_hints_is_refused():
  """Naming the piece, the task and what it lacks."""
  with pytest.raises(ValueError, match='EasierPrompts needs .* Arithmetic has'):
    EasierPrompts().check(CheckContext(task=Arithmetic()))
  EasierPrompts().check(CheckContext(task=Chain()))
  EasierPrompts(graded=True).check(CheckContext(task=Chain()))
  EasierPrompts().check(CheckContext(task=Bandit()))
  with pytest.raises(ValueError, match='Bandit has no method `hinted_by`'):
    EasierPrompts(graded=True).check(CheckContext(task=Bandit()))


@pytest.mark.slow
def test_it_acts_on_the_bandit():
  """Four contexts in ten are below the mean of an untrained policy."""
  sets = ['rollout.max_prompt_tokens=2']  # a hint is one token
  config = configuration.build('bandit', 'reg_grpo@augmented', sets)
  found = influence_run.measure(influence_run.configured(config, 'reg_grpo', 2))
  assert 0.2 < found['rows_changed'] < 0.6
