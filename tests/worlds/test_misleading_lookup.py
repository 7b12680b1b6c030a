"""Two hops, of which one may lead nowhere."""

from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import MisleadingLookup


def walk(task, index, actions):
  """(the first observation, replies to the actions); {0}, {1}: named words."""
  example = task.example('train', index)
  episode = task.make(example)
  first = episode.reset(seed_of(example)).observation
  named = episode.step(first[0]).observation[2:]
  return named, [episode.step(action.format(*named)) for action in actions]


def test_a_dead_end_and_the_way_back():
  """trap = 1: the first word is a dead end, the second has the value."""
  task = MisleadingLookup(trap=1.0)
  for index in range(5):
    named, (dead, value) = walk(task, index, ['{0}', 'xy{1}'])
    assert dead.observation == f'{named[0]}>-'
    assert (dead.rewards['dead_end'], dead.done) == (1.0, False)
    answer = value.observation[2:]
    assert answer.isdigit() and value.rewards['dead_end'] == 0.0
    assert (dead.rewards['found'], value.rewards['found']) == (0.0, 1.0)
    *_, last = walk(task, index, ['{0}', '{0}', '{1}', answer])[1]
    assert last.done and last.rewards == {
      'outcome': 1.0,
      'found': 0.0,
      'dead_end': 0.0,
      'recovered': 1.0,
    }
    direct = walk(task, index, ['{1}', answer])[1][-1]
    assert (direct.rewards['outcome'], direct.rewards['recovered']) == (1, 0)


def test_without_traps_the_first_word_has_the_value():
  """And another digit is wrong."""
  task = MisleadingLookup(trap=0.0, num_values=2)
  named, (value,) = walk(task, 3, ['{0}'])
  answer = value.observation[2:]
  wrong = {'0': '1', '1': '0'}[answer]
  assert walk(task, 3, [wrong])[1][0].rewards['outcome'] == 0.0
  assert walk(task, 3, [answer])[1][0].rewards['outcome'] == 1.0
  assert len(named) == 2


def test_thoughts_and_silence_say_nothing():
  """Letters without a meaning and an empty turn."""
  task = MisleadingLookup()
  for reply in walk(task, 1, ['x', ''])[1]:
    assert (reply.observation, reply.done) == ('-', False)
  assert set('xyz?>-') <= set(task.alphabet)
