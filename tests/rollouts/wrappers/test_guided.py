"""Hinted rows: when they are drawn, and the ratio that trains them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import score as score_lib
from rl_jax.pieces import losses
from rl_jax.rollouts.wrappers.guided import HintGuided, join_groups
from rl_jax.tasks import Arithmetic, Countdown


def test_a_prompt_failed_if_no_valid_reward_is_high():
  """NaN is a verification that failed, not a solution."""
  rewards = np.array([[0, 1], [0, 0.5], [np.nan, 0], [np.nan, 1]])
  found = HintGuided(solved_above=0.5).failed(rewards)
  assert found.tolist() == [False, True, True, False]


@pytest.mark.parametrize('advantage, expected', [(1.0, 0.22313), (-1.0, 0.0)])
def test_the_ratio_is_across_prompts_by_hand(toy, advantage, expected):
  """Plain log-prob -2, hinted sampler -.5: ratio e^-1.5 = .22313, below 1 - .2:
  kept for A > 0, clipped away for A < 0. The plain row has ratio 1."""
  plain = toy.trajectories(
    np.ones((1, 1)), group_size=1, logp_behaviour_BT=np.array([[-2.0]])
  )
  hinted = plain.replace(logp_behaviour_BT=jnp.array([[-0.5]]))
  traj = join_groups(plain, hinted, jnp.array([True]))
  logp_BT = jnp.full((2, 1), -2.0)
  traj, metrics = score_lib.with_scores(
    traj, {'logp': logp_BT, 'entropy': jnp.zeros((2, 1))}
  )
  np.testing.assert_array_equal(traj.logp_old_BT[:, 0], [-2.0, -0.5])
  assert metrics['rollout/logp_gap_max'] == 0  # not a gap, another policy
  traj = traj.replace(advantages_BT=jnp.full((2, 1), advantage))
  pushes = -jax.grad(
    lambda x: losses.PPOClip()({'logp': x}, traj, jax.random.key(0))[0].sum()
  )(logp_BT)
  np.testing.assert_allclose(pushes[:, 0], [advantage, expected], rtol=1e-4)


def test_hinted_rows_of_a_solved_prompt_weigh_nothing(toy):
  """E0: prompt 0 failed, prompt 1 did not; two plain, two hinted rows each."""
  plain = toy.trajectories(
    np.ones((4, 1)), group_size=2, logp_behaviour_BT=np.full((4, 1), -2.0)
  )
  traj = join_groups(plain, plain, jnp.array([True, False]))
  kept = [1, 1, 1, 1, 1, 1, 0, 0]
  assert (traj.num_prompts, traj.group_size) == (2, 4)
  np.testing.assert_array_equal(traj.valid_B, kept)
  np.testing.assert_array_equal(traj.weight_B, kept)
  np.testing.assert_array_equal(traj.mask_BT[:, 0], kept)
  np.testing.assert_array_equal(
    traj.logp_behaviour_BT[:, 0], -2 * np.array(kept)
  )


def test_countdown_hints_at_the_first_operation():
  """The verifier judges the same answer."""
  task = Countdown()
  example = task.example('train', 3)
  hinted = task.hinted(example)
  assert hinted.prompt == f'{example.answer[:2]}>{example.prompt}'
  assert (hinted.id, hinted.answer) == (example.id, example.answer)


def test_a_task_without_hints_is_refused():
  """Naming the task and what it lacks."""
  with pytest.raises(ValueError, match='Arithmetic has no method `hinted`'):
    HintGuided().check_task(Arithmetic())
  HintGuided().check_task(Countdown())


def test_the_threshold_must_be_a_number():
  """NaN would call every prompt failed."""
  with pytest.raises(ValueError, match='HintGuided.solved_above = nan'):
    HintGuided(solved_above=math.nan)
