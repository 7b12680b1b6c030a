"""Games of guessing: their replies, rewards and players."""

import pytest

from rl_jax.worlds import TwentyQuestions, Wordle
from rl_jax.worlds.guessing_games import OBJECTS, WORDS, marks


def played(task, example, said):
  """The replies to so many actions."""
  episode = task.make(example)
  assert episode.reset(0).observation == '>'
  return [episode.step(text) for text in said]


def turns_of_solution(task, example):
  """The turns that the player of `solution` takes."""
  episode = task.make(example)
  episode.reset(0)
  for turn in range(1, 30):
    if episode.step(episode.solution[0]).done:
      return turn
  raise AssertionError('it never ends')


@pytest.mark.parametrize(
  ('word', 'guess', 'expected'),
  [
    ('rate', 'rate', 'gggg'),
    ('rate', 'tear', 'yyyy'),
    ('nose', 'noon', 'ggbb'),
    ('else', 'lose', 'ybgg'),
    ('roll', 'rail', 'gbbg'),
    ('sail', 'roll', 'bbbg'),  # one l answers one letter, that at its place
    ('lane', 'roll', 'bbyb'),
  ],
)
def test_marks_by_hand(word, guess, expected):
  assert marks(word, guess) == expected


def test_an_episode_of_wordle_by_hand():
  """Every turn costs 1 but the last, which ends the episode."""
  task = Wordle()
  example = task.example('train', 0)
  word = task.word(example)
  other = next(x for x in WORDS if x != word)
  replies = played(task, example, (other, 'xyz', word))
  assert replies[0].observation == f'{marks(word, other)}>'
  assert [r.rewards['cost'] for r in replies] == [-1.0, -1.0, 0.0]
  assert [r.rewards['invalid'] for r in replies] == [0.0, 1.0, 0.0]
  assert [r.rewards['outcome'] for r in replies] == [0.0, 0.0, 1.0]
  assert [r.done for r in replies] == [False, False, True]
  assert replies[1].observation == '->' and replies[2].observation == ''
  assert played(task, example, ['no'] * 6)[-1].done


def test_the_player_of_wordle_needs_four_guesses_at_most():
  task = Wordle(num_train=300)
  examples = {
    task.word(x): x for x in map(task.example, ['train'] * 300, range(300))
  }
  assert set(examples) == set(WORDS)
  turns = [turns_of_solution(task, x) for x in examples.values()]
  assert max(turns) == 4 and sum(turns) / 54 == pytest.approx(2.5556, abs=1e-3)


def test_an_episode_of_questions_by_hand():
  task = TwentyQuestions(questions=4)
  example = task.example('train', 0)
  name = task.hidden(example)
  other = 'A' if name != 'A' else 'B'
  replies = played(task, example, ('c', other, '?', name))
  flies = 'ny'[int(OBJECTS[name][2])]
  assert [r.observation for r in replies] == [f'{flies}>', 'n>', '->', '']
  assert [r.rewards['cost'] for r in replies] == [-1.0, -1.0, -1.0, 0.0]
  assert [r.rewards['outcome'] for r in replies] == [0.0, 0.0, 0.0, 1.0]
  assert replies[3].done and not replies[2].done


def test_halving_finds_every_object():
  """Four or five questions and the name; all objects differ."""
  assert len(set(OBJECTS.values())) == 16
  task = TwentyQuestions(num_train=200)
  examples = {
    task.hidden(x): x for x in map(task.example, ['train'] * 200, range(200))
  }
  turns = [turns_of_solution(task, x) for x in examples.values()]
  assert sum(turns) == 81 and max(turns) == 6


def test_episodes_are_functions_of_the_example():
  """Texts are of the alphabet, and a second episode begins as the first did."""
  for task in (Wordle(), TwentyQuestions()):
    example = task.example('validation', 3)
    assert example == task.example('validation', 3)
    episode = task.make(example)
    for _ in range(2):
      episode.reset(0)
      said = [episode.step(x).observation for x in episode.commands[:3]]
      assert set(''.join((*said, *episode.commands))) <= set(task.alphabet)
