"""Hinted rows: when they are drawn, and the ratio that trains them."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import score as score_lib
from rl_jax.pieces import losses
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LossContext
from rl_jax.rollouts.wrappers.guided import (
  HintGuided,
  as_without_hint,
  join_groups,
)
from rl_jax.tasks import Countdown
from rl_jax.worlds import Arithmetic


def test_a_prompt_failed_if_no_valid_reward_is_high():
  """NaN is a verification that failed, not a solution."""
  rewards = np.array([[0, 1], [0, 0.5], [np.nan, 0], [np.nan, 1]])
  found = HintGuided(solved_above=0.5)._failed(rewards)
  assert found.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
  ('advantage', 'corrected', 'expected'),
  [(1.0, True, 0.22313), (-1.0, True, 0.0), (1.0, False, 1), (-1.0, False, -1)],
)
def test_the_ratio_by_hand(toy, advantage, corrected, expected):
  """Plain log-prob -2, hinted sampler -.5: ratio e^-1.5 = .22313, below 1 - .2:
  kept for A > 0, clipped away for A < 0. The plain row has ratio 1, and so has
  the hinted one without correction."""
  plain = toy.trajectories(
    np.ones((1, 1)), group_size=1, logp_behaviour_BT=np.array([[-2.0]])
  )
  hinted = plain.replace(logp_behaviour_BT=jnp.array([[-0.5]]))
  traj = join_groups(plain, hinted, jnp.array([True]))
  logp_BT = jnp.full((2, 1), -2.0)
  if not corrected:
    traj = as_without_hint(traj, logp_BT)
  traj, metrics = score_lib.with_scores(
    traj, {'logp': logp_BT, 'entropy': jnp.zeros((2, 1))}
  )
  old = [-2.0, -0.5 if corrected else -2.0]
  np.testing.assert_array_equal(traj.logp_old_BT[:, 0], old)
  assert metrics['rollout/logp_gap_max'] == 0  # not a gap, another policy
  traj = traj.replace(advantages_BT=jnp.full((2, 1), advantage))
  pushes = -jax.grad(
    lambda x: losses.PPOClip()(
      LossContext({'logp': x}, traj, jax.random.key(0))
    ).value.sum()
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
    HintGuided().check(CheckContext(task=Arithmetic()))
  HintGuided().check(CheckContext(task=Countdown()))


class Rounds:
  """A sampler of one round with hints."""

  task = types.SimpleNamespace(hinted=lambda example: f'{example}!')
  fits = staticmethod(lambda example: example != 'long!')

  def __init__(self, hinted, logp_BT):
    self.hinted, self.logp_BT, self.asked = hinted, logp_BT, []

  def sample(self, examples, indices):
    """The given rows."""
    self.asked.append(examples)
    return self.hinted, 'round'

  def run(self, function, *arrays):
    """Eagerly."""
    return function(*arrays)

  def logp(self, traj):
    """The given log-probs."""
    return self.logp_BT


def extended(piece, plain, hinted, reward_NG, logp_BT=None, names='ab'):
  """(joined rows, examples of the round with hints or [])."""
  sampler = Rounds(hinted, logp_BT)
  done = types.SimpleNamespace(
    examples=list(names), indices=None, reward_NG=np.array(reward_NG)
  )
  traj, rounds = piece.extend(plain, done, sampler)
  assert len(rounds) == len(sampler.asked)
  return traj, sum(sampler.asked, [])


@pytest.mark.parametrize(
  ('always', 'kept'), [(False, [1, 1, 0, 0]), (True, [1, 1, 1, 1])]
)
def test_solved_prompts_have_hinted_rows_if_always(toy, always, kept):
  """Prompt a is solved, b is not: rows of a with a hint, of b with a hint."""
  plain = toy.trajectories(np.ones((4, 1)), group_size=2, rewards={})
  piece = HintGuided(always=always)
  traj, asked = extended(piece, plain, plain, [[0, 1], [0, 0]])
  assert asked == ['a!', 'b!']
  assert traj.valid_B.tolist() == [1, 1, *kept[2:], 1, 1, 1, 1]
  traj, asked = extended(piece, plain, plain, [[0, 1], [1, 0]])
  assert asked == (['a!', 'b!'] if always else [])
  assert traj.valid_B.sum() == (8 if always else 4)


def test_always_is_not_with_a_hint_that_is_too_long(toy):
  """Its prompt has no hinted rows."""
  plain = toy.trajectories(np.ones((4, 1)), group_size=2, rewards={})
  piece = HintGuided(always=True)
  names = ('long', 'b')
  traj, asked = extended(piece, plain, plain, [[0, 1]] * 2, names=names)
  assert asked == ['long', 'b!']
  assert traj.valid_B.tolist() == [1, 1, 0, 0, 1, 1, 1, 1]


def test_an_empty_hint_is_twice_the_group(toy):
  """E1: PolicyRollout is GRPO with 2 G samples, whatever log-probs the sampler
  has reported of hinted rows."""
  method = toy.get_method('policy_rollout')
  grpo = toy.get_method('grpo')
  assert dataclasses.replace(method, rollout=None) == grpo
  reward = np.array([1.0, 0, 0, 0, 1, 1, 0, 1])
  old = np.linspace(-2, -0.1, 16).reshape(8, 2)

  def made(rows, size, drawn=old):
    return toy.trajectories(
      np.ones((len(rows), 2)),
      group_size=size,
      reward_B=reward[rows],
      rewards={},
      logp_behaviour_BT=drawn[rows],
      logp_ref_BT=old[rows],
      logp_old_BT=None,
    )

  whole = made(np.arange(8), 4)
  first, second = np.array([0, 1, 4, 5]), np.array([2, 3, 6, 7])
  parts = made(first, 2), made(second, 2, drawn=old + 1)
  traj, _ = extended(
    method.rollout, *parts, reward[first].reshape(2, 2), jnp.array(old)
  )
  stats = {'logp': jnp.array(old), 'entropy': jnp.zeros((8, 2))}

  def grads(method, traj):
    traj, metrics = score_lib.with_scores(traj, stats)
    assert metrics['rollout/logp_gap_max'] == 0
    state = method.init_state(2)
    run = toy.run(method.as_arrays(), traj, stats, state, jax.random.key(0))
    return run['grads']['logp']

  expected = grads(grpo, whole)
  assert np.abs(expected).max() > 0.01
  np.testing.assert_allclose(grads(method, traj), expected, rtol=1e-5)


def test_the_policy_is_read_where_ratios_are_not_corrected():
  """One optimizer step a rollout has no other pass for it."""
  assert HintGuided(corrected=False).scores and not HintGuided().scores
