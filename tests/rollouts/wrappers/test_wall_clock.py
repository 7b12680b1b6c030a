"""A collector sees some episodes in a fixed time; weights undo the choice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import validate
from rl_jax.pieces import credit
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import CreditContext
from rl_jax.rollouts.wrappers.wall_clock import WallClock, kept_by_time
from rl_jax.runs.loop import Trainer
from rl_jax.types import Turns

KEY = jax.random.key(0)


def episodes(toy, duration, **fields):
  """Rows of one turn and one token that took so long."""
  duration = np.asarray(duration, np.float32)
  B, ones = len(duration), np.ones((len(duration), 1), np.float32)
  turns = Turns(
    reward_BK=ones,
    state_BK=ones.astype(np.int32),
    action_BK=ones.astype(np.int32),
    calls_BK=ones.astype(np.int32),
    duration_BK=jnp.asarray(duration[:, None]),
  )
  return toy.trajectories(
    ones,
    group_size=B,
    turn_BT=np.zeros((B, 1), np.int32),
    turns=turns,
    **fields,
  )


def test_episodes_are_kept_by_their_duration(toy):
  """A tenth of those of 10 ticks, a half of those of 2, all of 1."""
  duration = np.tile([1.0, 2.0, 10.0], 2000)
  kept = np.asarray(kept_by_time(episodes(toy, duration), KEY).valid_B)
  shares = [kept[duration == d].mean() for d in (1.0, 2.0, 10.0)]
  np.testing.assert_allclose(shares, [1.0, 0.5, 0.1], atol=0.04)


def test_equal_durations_change_nothing(toy):
  """E0: the reduction; nor does a rollout without durations."""
  traj = episodes(toy, [3.0] * 6)
  for rows in (traj, traj.replace(turns=None)):
    found = kept_by_time(rows, KEY)
    np.testing.assert_array_equal(found.valid_B, 1.0)
    np.testing.assert_array_equal(found.weight_B, 1.0)


def test_the_unit_of_time_changes_nothing(toy):
  """E0, by a power of two; invalid rows are neither the shortest nor kept."""
  duration = np.array([1.0, 4.0, 4.0, 4.0, 0.25])
  valid = np.array([1.0, 1, 1, 1, 0], np.float32)
  some, others = (
    kept_by_time(episodes(toy, unit * duration, valid_B=valid), KEY).valid_B
    for unit in (1.0, 8.0)
  )
  np.testing.assert_array_equal(some, others)
  assert some[0] == 1.0 and some[4] == 0.0


def test_weights_of_durations_restore_the_frequencies(toy):
  """The sum of the weights of an arm over that of the other is how often both
  were chosen, not how often they were seen: 3 to 1, and not 30 to 1.
  """
  slow = np.arange(8000) % 4 == 0
  traj = kept_by_time(episodes(toy, np.where(slow, 10.0, 1.0)), KEY)
  weight = credit.DurationWeight()(
    CreditContext(jnp.ones(len(slow)), traj)
  ).value[:, 0]
  weight = np.asarray(weight * traj.valid_B)
  seen = np.asarray(traj.valid_B)
  assert seen[~slow].sum() / seen[slow].sum() > 20
  ratio = weight[~slow].sum() / weight[slow].sum()
  assert ratio == pytest.approx(3.0, rel=0.2)


def test_the_weight_is_accepted_after_the_clock_only():
  sets = ('model.value_head=True',)
  validate(configuration.build('priced_tools', 'duration_ppo@by_time', sets))
  validate(
    configuration.build('priced_tools', 'duration_ppo@by_time_unweighted', sets)
  )
  with pytest.raises(ValueError, match=r'or set method.rollout=WallClock\(\)'):
    validate(configuration.build('priced_tools', 'duration_ppo', sets))


def test_rows_must_be_episodes():
  class Rollout:
    turns = None

  with pytest.raises(ValueError, match='WallClock reads how long the turns'):
    WallClock().check(CheckContext(rollout=Rollout()))


@pytest.mark.slow
def test_a_run_with_the_clock(tmp_path):
  """It trains on the episodes that are kept."""
  config = configuration.build(
    'priced_tools',
    'duration_ppo@by_time',
    (
      *('model.value_head=True', 'iterations=2', 'evaluation.every=0'),
      *('rollout.num_prompts=8', 'rollout.group_size=4'),
    ),
  )
  trainer = Trainer(config, str(tmp_path / 'run'))
  row = trainer.run()
  assert row['step'] == 2
