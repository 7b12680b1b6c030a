"""Hints for prompts that are harder than the mean."""

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import influence
from experiments.flags import configuration
from rl_jax.rollouts.wrappers.easier_prompts import (
  EasierPrompts,
  in_their_place,
)
from rl_jax.tasks import Arithmetic, Chain


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
  found = EasierPrompts(margin=margin).hard(np.array(rewards))
  # 2.6 / 7 = .371: away by .371, -.629, -.129 and .071.
  assert found.tolist() == [*expected, False]


def test_equal_prompts_are_left_alone():
  assert not EasierPrompts().hard(np.full((3, 4), 0.25)).any()


def test_new_groups_take_the_place_of_the_old(toy):
  """Prompt, tokens and rewards of group 1 alone; its rows are foreign."""
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


def test_a_task_without_hints_is_refused():
  """Naming the piece, the task and what it lacks."""
  with pytest.raises(ValueError, match='EasierPrompts needs .* Arithmetic has'):
    EasierPrompts().check_task(Arithmetic())
  EasierPrompts().check_task(Chain())


@pytest.mark.slow
def test_it_acts_on_the_bandit():
  """Four contexts in ten are below the mean of an untrained policy."""
  sets = ['rollout.max_prompt_tokens=2']  # a hint is one token
  config = configuration.build('bandit', 'reg_grpo@augmented', sets)
  found = influence.measure(influence.configured(config, 'reg_grpo', 2))
  assert 0.2 < found['rows_changed'] < 0.6
