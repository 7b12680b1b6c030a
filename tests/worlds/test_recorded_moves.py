"""States of recorded games and the moves that were made in them."""

import pytest

from rl_jax.tasks.environments.base import SEED
from rl_jax.worlds import KeyDoor, RecordedMoves


def test_moves_are_those_of_a_shortest_way():
  """Made one after the other from the observed state they end the game."""
  task, grids = RecordedMoves(), KeyDoor(num_train=2000)
  places = set()
  for index in range(40):
    example = task.example('train', index)
    grid = grids.example('train', index)
    layout = grids.layout(grid.meta[SEED])
    words = grids.actions(grid)
    assert example.prompt.startswith(layout.described())
    episode = grids.make(grid)
    told = episode.reset(grid.meta[SEED]).observation
    place = 0
    while told != example.prompt:
      told = layout.described() + episode.step(words[place]).observation
      place += 1
    assert example.answer == words[place]
    places.add(place)
    assert set(example.prompt + example.answer) <= set(task.alphabet)
  assert 0 in places and len(places) > 4


@pytest.mark.parametrize('noise', [0.3, 0.9])
def test_noise_limits_the_accuracy(noise):
  """1 - noise + noise / 6 of the labels are those without noise."""
  count = 400
  clean, noisy = RecordedMoves(), RecordedMoves(noise=noise)
  same = 0
  for index in range(count):
    one, other = (t.example('train', index) for t in (clean, noisy))
    assert one.prompt == other.prompt
    same += one.answer == other.answer
  assert noisy.best_accuracy == pytest.approx(1 - noise * 5 / 6)
  assert same / count == pytest.approx(noisy.best_accuracy, abs=0.06)


def test_rewards():
  """The recorded move only."""
  task = RecordedMoves()
  example = task.example('test', 7)
  assert task.reward(example, task.target(example)) == {'outcome': 1.0}
  for response in ('', example.answer * 2, f' {example.answer}'):
    assert task.reward(example, response) == {'outcome': 0.0}
