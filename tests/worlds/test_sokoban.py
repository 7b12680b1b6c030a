"""Rooms of Sokoban, and turns in new words."""

import collections

import pytest

from rl_jax.tasks import Reworded
from rl_jax.worlds import KuhnMatch, Sokoban
from rl_jax.worlds.sokoban import MOVES


def begun(task, index=0):
  example = task.example('train', index)
  episode = task.make(example)
  return episode, episode.reset(example.meta['seed'])


def solution(task, index):
  """The shortest actions, by a breadth-first search on the environment."""
  example = task.example('train', index)

  def played(actions):
    episode = task.make(example)
    reply = episode.reset(example.meta['seed'])
    for action in actions:
      reply = episode.step(action)
    return reply

  queue, seen = collections.deque([()]), set()
  while queue:
    actions = queue.popleft()
    reply = played(actions)
    if reply.done:
      return actions
    if reply.state in seen:
      continue
    seen.add(reply.state)
    queue.extend((*actions, name) for name in MOVES)
  return None


@pytest.mark.parametrize('index', range(3))
def test_rooms_can_be_solved(index):
  """The last step has the outcome, and the box arrives once."""
  task = Sokoban(size=5)
  actions = solution(task, index)
  assert actions
  episode, first = begun(task, index)
  assert first.observation.count('X') == 1
  total = collections.Counter()
  for action in actions:
    reply = episode.step(action)
    total.update(reply.rewards)
  assert reply.done and '√' in reply.observation
  assert total == {'outcome': 1, 'steps': len(actions), 'pushed': 1}


def test_walls_stop_player_and_box():
  episode, _ = begun(Sokoban(size=5))
  for name in MOVES:
    for _ in range(6):
      room = episode.step(name).observation
      assert room.count('X') + room.count('√') == 1
      assert room.count('P') + room.count('S') == 1
  assert episode.step('jump').observation == room


def test_the_same_example_is_the_same_room():
  rooms = [begun(Sokoban(), n)[1].observation for n in range(10)]
  assert rooms == [begun(Sokoban(), n)[1].observation for n in range(10)]
  assert len(set(rooms)) > 5


def test_every_turn_is_a_new_message():
  """The last two steps, what is seen, and what may be done."""
  task = Reworded(
    task=Sokoban(size=5),
    message='{step}|{history}|{observation}|{actions}',
    line='{step}:{action};',
  )
  episode, first = begun(task)
  assert not first.forget
  for count, name in enumerate(('up', 'down', 'up'), 1):
    reply = episode.step(f'<think>a</think><action> {name} </action>')
    assert reply.components['invalid'] == 0.0
    if reply.done:
      pytest.fail('the first room must not be solved by these')
    assert reply.forget and reply.history == ()
    step, history, room, actions = reply.observation.split('|')
    assert step == str(count) and room.startswith('#####')
    assert actions == 'up, down, left, right'
  assert history == '2:down;3:up;'
  reply = episode.step('I go <action> up')
  assert reply.components['invalid'] == 1.0
  assert '4:I go <action> up;' in reply.observation


def test_a_turn_may_be_the_action():
  task = Reworded(task=Sokoban(size=5), opening='', closing='')
  assert task.action_in('up') == ('up', True)
  other = Reworded(task=Sokoban(size=5), most=3)
  assert other.action_in('abcdef') == ('def', False)
  assert other.action_in('<action>a</action> <action>b</action>') == ('b', True)
  assert other.traits.rewrites


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'message': '{state}{observation}'}, r"has \['state'\]"),
    ({'message': 'x'}, 'has no {observation}'),
    ({'line': '{actions}'}, r"Reworded.line = .* has \['actions'\]"),
    ({'opening': ''}, 'give both marks or none'),
    ({'task': KuhnMatch()}, 'KuhnMatch has several players'),
  ],
)
def test_what_cannot_be_is_named(fields, message):
  with pytest.raises(ValueError, match=message):
    Reworded(**{'task': Sokoban()} | fields)
