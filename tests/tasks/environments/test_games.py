"""Gymnasium and TextArena: with the packages, with stubs, and without them."""

import sys
import types

import pytest

from rl_jax.tasks import GymnasiumText, TextArena
from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification.sessions import Request, SessionPool

WORDS = ('left', 'down', 'right', 'up')


class _Text:
  def contains(self, text):
    """Words of small letters."""
    return text.islower()


class _Discrete:
  def __init__(self, n):
    self.start, self.n = 0, n


class _Line:
  """From 0 to 3; steps right cost 1, the end is worth 5."""

  def __init__(self, space):
    self.action_space = space

  def reset(self, seed):
    """At 0."""
    self.place = 0
    return self.place, {}

  def step(self, action):
    """2 is to the right."""
    self.place += int(action == 2 or action == 'right')
    done = self.place == 3
    return self.place, 5.0 if done else -1.0, done, self.place < 0, {}

  def render(self):
    """With a mark as terminals have it."""
    return f'a\x1b[41m{self.place}\x1b[0mb'

  def close(self):
    """Nothing."""


@pytest.fixture(name='stub')
def _stub(monkeypatch):
  """A package with one environment."""
  spaces = types.SimpleNamespace(Text=_Text, Discrete=_Discrete)

  def make(name, render_mode=None, actions=4, **options):
    del name, render_mode, options
    return _Line(_Text() if actions == 'text' else _Discrete(actions))

  package = types.SimpleNamespace(spaces=spaces, make=make)
  monkeypatch.setitem(sys.modules, 'gymnasium', package)


def said(task, actions):
  """The replies to the reset and to each action."""
  example = task.example('train', 0)
  asked = [
    Request((0, 0), example, seed_of(example), tuple(actions[:n]))
    for n in range(len(actions) + 1)
  ]
  with SessionPool(task) as pool:
    return [pool.ask([request])[0].reply for request in asked]


def test_an_episode_of_words(stub):
  """Rewards sum to 3 of at least `solved`; what is no word costs a turn."""
  actions = ['right', 'jump', ' right', 'right']
  found = said(GymnasiumText(words=WORDS, solved=3.0), actions)
  assert [reply['observation'] for reply in found] == [
    *('0\n', '1\n', 'Not an action: left, down, right, up\n', '2\n', '3\n')
  ]
  assert [reply['state'] for reply in found] == ['0', '1', '1', '2', '3']
  assert found[2]['rewards'] == {'outcome': 0, 'reward': 0, 'invalid': 1}
  assert found[4]['rewards'] == {'outcome': 1, 'reward': 5, 'invalid': 0}
  assert found[4]['done'] and found[1]['action'] == 'right'
  unsolved = said(GymnasiumText(words=WORDS, solved=3.5), actions)
  assert unsolved[4]['rewards']['outcome'] == 0


def test_actions_of_text_and_rendered_observations(stub):
  task = GymnasiumText(
    options={'actions': 'text'}, shown='ansi', prompt='Go.\n'
  )
  found = said(task, ['right', 'LEFT'])
  assert [reply['observation'] for reply in found] == [
    *('a[0]b', 'a[1]b', 'Not an action\n')
  ]
  assert task.example('train', 0).prompt == 'Go.\n'


def test_spaces_and_words_that_do_not_fit_are_named(stub):
  with pytest.raises(
    ValueError, match='GymnasiumText.words: FrozenLake-v1 has'
  ):
    GymnasiumText(words=('a',)).prepare()
  with pytest.raises(ValueError, match='render_mode follows from shown'):
    GymnasiumText(options={'render_mode': 'human'})


@pytest.mark.parametrize('task', [GymnasiumText(), TextArena()])
def test_without_the_package_the_extra_is_named(monkeypatch, task):
  for name in ('gymnasium', 'textarena'):
    monkeypatch.setitem(sys.modules, name, None)
  with pytest.raises(ImportError, match=r'rl_jax\[games\]'):
    task.prepare()


def test_frozen_lake():
  """The real one, by its shortest path."""
  pytest.importorskip('gymnasium', reason="needs the extra 'games'")
  options = {'is_slippery': False}
  task = GymnasiumText(name='FrozenLake-v1', words=WORDS, options=options)
  path = ['down', 'down', 'right', 'right', 'down', 'right']
  found = said(task, path)
  assert found[-1]['rewards'] == {'outcome': 1, 'reward': 1, 'invalid': 0}
  assert [r['state'] for r in found] == ['0', '4', '8', '9', '10', '14', '15']
  shown = GymnasiumText(name='FrozenLake-v1', options=options, shown='ansi')
  assert said(shown, [])[0]['observation'].startswith('\n[S]FFF\n')


def test_tower_of_hanoi():
  """The real one: every observation is new, the game is solved in 7 moves."""
  pytest.importorskip('textarena', reason="needs the extra 'games'")
  moves = ['[A C]', '[A B]', '[C B]', '[A C]', '[B A]', '[B C]', '[A C]']
  found = said(TextArena(), moves)
  assert found[-1]['rewards'] == {'outcome': 1, 'reward': 1}
  assert found[-1]['done'] and 'You are playing' in found[0]['observation']
  assert not any('You are playing' in r['observation'] for r in found[1:])
  assert found[1]['observation'].startswith('You moved disk 1 from A to C.\n')
  with pytest.raises(
    ValueError, match='TicTacToe-v0 is no game for one player'
  ):
    TextArena(name='TicTacToe-v0').prepare()
