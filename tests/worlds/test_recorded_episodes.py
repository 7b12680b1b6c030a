"""States of KeyDoor with recorded episodes."""

import pytest

from rl_jax.worlds import RecordedEpisodes
from rl_jax.worlds.key_door import Layout
from rl_jax.worlds.key_door_words import WORDS, observed
from rl_jax.worlds.recorded_episodes import nearer

LETTERS = WORDS['letter']
# The key is below the start, the door right of it, the goal behind the door.
LAYOUT = Layout(size=3, wall=1, door=0, key=(0, 1), goal=(2, 0), start=(0, 0))


@pytest.mark.parametrize(
  ('state', 'letters'),
  [
    ((0, 0, 0), 'd'),  # to the key
    ((0, 1, 0), 't'),
    ((0, 1, 1), 'u'),  # with the key back
    ((0, 0, 1), 'o'),
    ((0, 0, 2), 'r'),
    ((0, 2, 0), 'u'),
  ],
)
def test_what_brings_the_goal_nearer(state, letters):
  """By hand."""
  assert ''.join(LETTERS[a] for a in nearer(LAYOUT, state)) == letters


def test_episodes_are_walks_in_the_grid():
  """Replayed move by move; the reward is 1 at the goal, else it was cut."""
  task, rewards = RecordedEpisodes(turns=3, cut=0.0), set()
  for index in range(30):
    example = task.example('train', index)
    assert example == task.example('train', index)
    layout = task.grids.layout(example.meta['seed'])
    start = tuple(example.meta['state'])
    assert example.prompt == layout.described() + observed(start)
    assert start[:2] != layout.goal
    found = task.recorded(example)
    assert found == task.recorded(example) and len(found) == task.num_recorded
    for episode in found:
      state, (*read, last) = start, [told for _, told in episode.turns]
      moves = [move for move, _ in episode.turns]
      states = [state := layout.next(state, LETTERS.index(m)) for m in moves]
      assert read == list(map(observed, states[:-1])) and last == ''
      done = state[:2] == layout.goal
      assert episode.reward == done and episode.truncated != done
      assert len(moves) == 3 or done
      rewards.add(episode.reward)
  assert rewards == {0.0, 1.0}


@pytest.mark.parametrize('noise', [0.0, 0.6])
def test_noise_is_that_of_the_player(noise):
  """1 - 5/6 of the noise of the moves are those of the player without it."""
  task, moves = RecordedEpisodes(noise=noise, turns=1), []
  for index in range(150):
    example = task.example('train', index)
    for episode in task.recorded(example):
      moves.append(episode.turns[0][0] == task.target(example))
  expected = 1 - noise * 5 / 6
  assert sum(moves) / len(moves) == pytest.approx(expected, abs=0.06)


def test_rewards():
  """One move that brings the goal nearer."""
  task = RecordedEpisodes()
  example = task.example('test', 3)
  for letter in LETTERS:
    expected = float(letter in example.answer)
    assert task.reward(example, letter) == {'outcome': expected}
  assert task.reward(example, task.target(example)) == {'outcome': 1.0}
  for response in ('', example.answer * 2):
    assert task.reward(example, response) == {'outcome': 0.0}
