"""Shares of the solution by stage; rounds are tested in test_collect."""

import dataclasses
import types

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.pieces import credit
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.rounds import unsolved
from rl_jax.rollouts.wrappers.hints import chosen_groups
from rl_jax.rollouts.wrappers.staged_hints import StagedHints
from rl_jax.worlds import Bandit, Chain


class Sampler:
  """Gives the rewards of each round; keeps the shares that it is asked for."""

  def __init__(self, rows, rewards, short=lambda share: True):
    self.rows, self.rewards, self.asked = rows, iter(rewards), []
    self.task = types.SimpleNamespace(hinted_by=lambda example, share: share)
    self.fits = short

  def sample(self, examples, indices):
    """Other rows: one more in each round."""
    self.asked.append(examples)
    self.rows = self.rows.replace(response_BT=self.rows.response_BT + 1)
    reward_NG = np.array(next(self.rewards), float)
    return self.rows, types.SimpleNamespace(reward_NG=reward_NG)

  def run(self, function, *arrays):
    """Eagerly."""
    return function(*arrays)


def extend(toy, rewards, piece=None, **fields):
  """(rows of one token that says the round, shares asked for) of 3 prompts."""
  ones = np.ones((6, 1))
  rows = toy.trajectories(ones, group_size=2, response_BT=0 * ones, rewards={})
  sampler = Sampler(rows, rewards[1:], **fields)
  done = types.SimpleNamespace(
    examples=['a', 'b', 'c'], indices=None, reward_NG=np.array(rewards[0])
  )
  traj, rounds = (piece or StagedHints()).extend(rows, done, sampler)
  assert len(rounds) == len(sampler.asked)
  return traj.response_BT[::2, 0].tolist(), sampler.asked


SOLVED, WRONG, FORM = [0, 1.5], [0, 0], [0.5, 0.5]


def test_stages_by_hand(toy):
  """Prompt a is right at once; b fails (the form by itself earns .5), has only
  the form with 25% and is right with 50%; c fails until 75%.
  """
  rewards = [
    [SOLVED, FORM, WRONG],
    [WRONG, FORM, WRONG],
    [WRONG, SOLVED, WRONG],
    [WRONG, WRONG, SOLVED],
  ]
  found, asked = extend(toy, rewards)
  assert asked == [[0.25] * 3, [0.5] * 3, [0.75] * 3]
  assert found == [0, 2, 3]
  # Where .5 is right, b is left unchanged.
  piece = StagedHints(solved_above=0.4)
  assert extend(toy, rewards, piece)[0] == [0, 0, 3]


def test_as_many_rounds_as_are_needed(toy):
  """None without failure, one where the first hint helps."""
  assert extend(toy, [[SOLVED] * 3]) == ([0, 0, 0], [])
  found, asked = extend(toy, [[WRONG, SOLVED, SOLVED], [SOLVED] * 3])
  assert found == [1, 0, 0] and asked == [[0.25] * 3]


def test_no_longer_hint_follows_one_that_is_too_long(toy):
  """b and c have no hint of a half or more; a is right before."""
  rewards = [[WRONG] * 3, [SOLVED, WRONG, WRONG], [WRONG] * 3]

  def short(share):
    return isinstance(share, str) or share < 0.5

  found, asked = extend(toy, rewards, short=short)
  assert found == [1, 1, 1] and asked == [[0.25] * 3, ['a', 'b', 'c']]


def test_units_of_the_reward_change_nothing(toy):
  """Ten times the rewards and the threshold; NaN is not a success."""
  rewards = np.array([[WRONG, FORM, SOLVED], [SOLVED, SOLVED, WRONG]])
  piece = StagedHints(solved_above=5.0)
  assert extend(toy, 10 * rewards, piece) == extend(toy, rewards)
  nan = np.array([[np.nan, 0.0], [np.nan, 1.0]])
  assert unsolved(nan, 0.5).tolist() == [True, False]


def test_groups_keep_their_prompts(toy):
  """Two rounds have prompts of 1 and of 6."""
  plain = toy.trajectories(np.ones((4, 2)), group_size=2, rewards={})
  hinted = plain.replace(prompt_NP=plain.prompt_NP + 5)
  rows = chosen_groups((plain, hinted), np.array([2, 1]))
  np.testing.assert_array_equal(rows.prompt_NP, [[6, 6], [1, 1]])
  np.testing.assert_array_equal(rows.extras['foreign_B'], [1, 1, 0, 0])
  np.testing.assert_array_equal(rows.mask_BT, 1)  # hints are prompts


def test_a_half_of_the_chain():
  """Four steps: one with 25%, two with 50%, three with 75%."""
  task = Chain()
  example = dataclasses.replace(task.example('train', 0), prompt='1+1+1+1+1=')
  shown = [
    task.hinted_by(example, share).prompt.count(';')
    for share in StagedHints().shares
  ]
  assert shown == [1, 2, 3]


def test_without_hints_the_method_is_grpo(toy):
  """GRPO with the token mean and without KL, but for eps beside the
  deviation.
  """
  method = toy.get_method('ghpo')
  plain = dataclasses.replace(
    method,
    rollout=None,
    credit=(credit.GroupCenter(), credit.GroupScale(eps=1e-6)),
  )
  assert plain == configuration.load_method('grpo@token_mean')
  assert method.credit[1].eps == 1e-4
  assert method.rollout == StagedHints(
    shares=(0.25, 0.5, 0.75), solved_above=0.5
  )


@pytest.mark.parametrize(
  'shares',
  [
    (),
    (0.5, 0.25),
    (0.5, 0.5),
    (0.0, 0.5),
    (0.5, 1.5),
    ('a',),
  ],
)
def test_shares_are_checked(shares):
  """The message names the field and what is allowed."""
  with pytest.raises(ValueError, match='StagedHints.shares = .*above 0, 1 at'):
    StagedHints(shares=shares)


def test_tasks_without_such_hints_are_refused():
  """Naming the piece, the task and what it lacks."""
  with pytest.raises(ValueError, match='StagedHints needs .* Bandit has no me'):
    StagedHints().check(CheckContext(task=Bandit()))
  StagedHints().check(CheckContext(task=Chain()))
