"""Episodes without the host between turns are those with it."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.episodes import episodes_on_device
from rl_jax.episodes.turns import TurnConfig
from rl_jax.worlds import KeyDoor

# Observations have 4 tokens: after four turns rows of 20 are full.
TURNS = TurnConfig(max_turns=6, max_turn_tokens=1, max_observation_tokens=4)

N = 12


@dataclasses.dataclass(frozen=True)
class NearDoor(KeyDoor):
  """KeyDoor that begins near the goal: random actions end some episodes."""

  num_train: int = 40

  def layout(self, seed):
    """With key and door already after the walker."""
    found = super().layout(seed)
    row = (found.goal[1] + 1) % self.size
    return dataclasses.replace(found, start=(found.wall + 1, row))


@pytest.fixture(scope='module', name='both')
def _both(Played):
  """(a round of the host, the same on the device, its reward components)."""
  task = NearDoor(reward_weights={'outcome': 1.0, 'maze': 0.25})
  played = Played(task, TURNS, size=20, num_prompts=N)
  answer, _ = task.device_answers(played.examples, played.tokenizer)
  play = functools.partial(
    episodes_on_device.play,
    cfg=played.model,
    sampling=decoding.SamplingConfig(eos_ids=played.tokenizer.eos_ids),
    game=episodes_on_device.Game(task, played.tokenizer, TURNS),
    answer_NA=answer,
  )
  empty = played.engine.start(*played.arrays, 0, 0)
  found = jax.jit(play)(played.params, empty, played.key)
  return played, *jax.device_get(found)


def test_the_record_is_that_of_the_host(both):
  """E2 in tokens, E1 in log-probs, E0 in the rest."""
  played, traj, _ = both
  for name in (
    *('response_BT', 'kind_BT', 'length_B', 'finished_B', 'turn_BT'),
    *('mask_BT', 'prompt_id_N'),
  ):
    np.testing.assert_array_equal(
      getattr(traj, name), getattr(played.host, name), err_msg=name
    )
  np.testing.assert_allclose(
    traj.logp_behaviour_BT, played.host.logp_behaviour_BT, atol=1e-5
  )
  for name in ('reward_BK', 'calls_BK', 'duration_BK'):
    np.testing.assert_array_equal(
      getattr(traj.turns, name), getattr(played.host.turns, name), err_msg=name
    )
  np.testing.assert_array_equal(
    traj.extras['first_call_B'], played.host.extras['first_call_B']
  )
  ends = {
    turn['end']
    for turn in map(played.episodes.shown(), range(N * played.traj.group_size))
  }
  assert ends == {'done', 'limit'} and traj.finished_B.sum() > 2
  assert traj.turn_BT.max() >= 3


def test_rewards_are_those_of_the_host(both):
  """E0: sums of components over the turns."""
  played, _, rewards = both
  for row, outcome in enumerate(played.outcomes):
    expected = {name: outcome.components[name] for name in rewards}
    assert {name: float(x[row]) for name, x in rewards.items()} == expected


@pytest.mark.parametrize('name', ['state_BK', 'action_BK'])
def test_numbers_are_equal_where_those_of_the_host_are(both, name):
  """Within a group, -1 alike; below twice the turns of a group."""
  played, traj, _ = both
  for of_host, found in zip(
    getattr(played.host.turns, name).reshape(N, -1),
    getattr(traj.turns, name).reshape(N, -1),
    strict=True,
  ):
    np.testing.assert_array_equal(of_host == -1, found == -1)
    np.testing.assert_array_equal(
      of_host[:, None] == of_host, found[:, None] == found
    )
    assert found.max() < 2 * found.size


def test_observations_that_would_be_cut_are_refused(both):
  """Before anything is compiled."""
  played, *_ = both
  task = NearDoor()
  short = dataclasses.replace(TURNS, max_observation_tokens=3)
  with pytest.raises(ValueError, match='max_observation_tokens = 3, but Near'):
    jax.eval_shape(
      functools.partial(
        episodes_on_device.play,
        cfg=played.model,
        sampling=decoding.SamplingConfig(eos_ids=played.tokenizer.eos_ids),
        game=episodes_on_device.Game(task, played.tokenizer, short),
        answer_NA=task.device_answers(played.examples, played.tokenizer)[0],
      ),
      played.params,
      played.engine.start(*played.arrays, 0, 0),
      played.key,
    )
