"""Gymnasium, TextArena, OpenSpiel: with the packages, stubs, or neither."""

import dataclasses
import os
import sys

import pytest

from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.tasks import (
  GymnasiumText,
  MiniGrid,
  OpenSpiel,
  RecordedWalks,
  TextArena,
)
from rl_jax.tasks.environments import gymnasium_text, information_states
from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification.sessions import Request, SessionPool

WORDS = ('left', 'down', 'right', 'up')


@pytest.fixture(name='lines')
def _lines(stub):
  """A package with one environment."""
  stub('gymnasium')


def said(task, actions):
  """The replies to the reset and to each action."""
  example = task.example('train', 0)
  asked = [
    Request((0, 0), example, seed_of(example), tuple(actions[:n]))
    for n in range(len(actions) + 1)
  ]
  with SessionPool(task) as pool:
    return [pool.ask([request])[0].reply for request in asked]


def test_an_episode_of_words(lines):
  """Rewards sum to 3 of at least `solved`; what is not a word costs a turn."""
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


def test_an_environment_is_used_again_in_its_process_only(lines, monkeypatch):
  """Workers are forks of the process that has made one to check it."""
  task = GymnasiumText(words=WORDS)
  example = task.example('train', 0)

  def made():
    episode = task.make(example)
    episode.reset(0)
    env = episode.unwrapped
    episode.close()
    return env

  first = made()
  assert made() is first
  with monkeypatch.context() as patch:
    patch.setattr(os, 'getpid', lambda: -1)
    assert made() is not first
  assert made() is first


def test_actions_of_text_and_rendered_observations(lines):
  task = GymnasiumText(
    options={'actions': 'text'}, shown='ansi', prompt='Go.\n'
  )
  found = said(task, ['right', 'LEFT'])
  assert [reply['observation'] for reply in found] == [
    *('a[0]b', 'a[1]b', 'Not an action\n')
  ]
  assert task.example('train', 0).prompt == 'Go.\n'


def test_spaces_and_words_that_do_not_fit_are_named(lines):
  with pytest.raises(
    ValueError, match='GymnasiumText.words: FrozenLake-v1 has'
  ):
    GymnasiumText(words=('a',)).prepare()
  with pytest.raises(ValueError, match='render_mode follows from shown'):
    GymnasiumText(options={'render_mode': 'human'})


def test_an_environment_of_ones_own_need_not_take_render_mode(lines):
  """It is given only where it has to render, and then its absence is named."""
  gymnasium = sys.modules['gymnasium']
  line = gymnasium.make('any')

  class Mine(type(line)):
    def __init__(self):
      super().__init__()

  gymnasium.registry['Mine-v0'] = Mine
  found = said(GymnasiumText(name='Mine-v0', words=WORDS), ['right'])
  assert [reply['observation'] for reply in found] == ['0\n', '1\n']
  with pytest.raises(ValueError, match="shown = 'ansi', but Mine-v0 takes no"):
    GymnasiumText(name='Mine-v0', shown='ansi').prepare()


@pytest.mark.parametrize(
  'task', [GymnasiumText(), TextArena(), OpenSpiel(), MiniGrid()]
)
def test_without_the_package_the_extra_is_named(monkeypatch, task):
  for name in ('gymnasium', 'textarena', 'pyspiel'):
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
    ValueError, match='TicTacToe-v0 is not a game for one player'
  ):
    TextArena(name='TicTacToe-v0').prepare()


def test_mini_grid():
  """The real one: a key is seen, taken and carried; other words do nothing."""
  pytest.importorskip('minigrid', reason="needs the extra 'games'")
  task = MiniGrid(name='MiniGrid-DoorKey-5x5-v0')
  example = task.example('train', 0)
  episode = task.make(example)
  begun = episode.reset(1)
  told = 'a locked yellow door 1 left; a yellow key 1 ahead\n'
  assert begun.observation.endswith(f'get to the goal\n{told}')
  wrong = episode.step('jump')
  assert (wrong.observation, wrong.state) == (told, begun.state)
  assert wrong.rewards == {'outcome': 0, 'reward': 0, 'invalid': 1}
  taken = episode.step('pickup')
  assert 'yellow key 1 ahead' not in taken.observation
  assert taken.observation.endswith('you carry a yellow key\n')
  assert taken.state != begun.state and not taken.done
  assert task.make(example).reset(1) == begun
  way = ('left', 'toggle', 'forward', 'forward', 'right', 'forward')
  said = [episode.step(action) for action in way]
  assert said[1].observation.startswith('an open yellow door 1 ahead; a green')
  assert [reply.done for reply in said] == 5 * [False] + [True]
  assert said[-1].rewards['outcome'] == 1
  episode.close()


def test_the_real_bot_solves_real_missions():
  """A third of its actions random, too; all that is said is made of pieces."""
  pytest.importorskip('minigrid', reason="needs the extra 'games'")
  grids = MiniGrid(name='BabyAI-GoToLocalS6N2-v0')
  tokens = PieceTokenizer(grids.alphabet)
  task = RecordedWalks(task=grids, noise=0.0, turns=12, num_recorded=1)
  for index in range(20):
    (walk,) = task.recorded(task.example('train', index))
    assert walk.reward == 1.0 and not walk.truncated
    assert max(len(tokens.encode(told)) for _, told in walk.turns) <= 11
  noisy = dataclasses.replace(task, noise=0.3)
  walks = [noisy.recorded(task.example('train', i))[0] for i in range(20)]
  assert sum(walk.reward for walk in walks) >= 15


def test_the_real_taxi():
  """Every walk earns what its initial state is worth."""
  pytest.importorskip('gymnasium', reason="needs the extra 'games'")
  words = ('s', 'n', 'e', 'w', 'p', 'd')
  taxi = GymnasiumText(name='Taxi-v4', words=words)
  task = RecordedWalks(task=taxi, noise=0.0, turns=24, num_recorded=1)
  table = taxi.make(taxi.example('train', 0)).unwrapped.P
  value_S, _ = gymnasium_text.solved_table(table, 24)
  for index in range(20):
    example = taxi.example('train', index)
    begun = taxi.make(example).reset(seed_of(example))
    assert task.recorded(example)[0].reward == value_S[int(begun.state)]
  assert taxi.best_return(24) == pytest.approx(7.93)


def test_tic_tac_toe():
  """The real one, of two players: each hears the other; three in a row win."""
  pytest.importorskip('textarena', reason="needs the extra 'games'")
  task = TextArena(name='TicTacToe-v0', players=2)
  found = said(task, ['[0]', '[3]', '[1]', '[4]', '[2]'])
  assert [reply['acting'] for reply in found] == [0, 1, 0, 1, 0, 0]
  rules = found[0]['observation']
  assert ['You are Player 0' in rules[0], 'You are Player 1' in rules[1]] == [
    True,
    True,
  ]
  heard = found[1]['observation']
  assert heard[0].startswith('Player 0 placed')
  assert heard[1].startswith('[Player 0] [0]\nPlayer 0 placed')
  assert found[-1]['done'] and not found[-2]['done']
  assert [one['reward'] for one in found[-1]['rewards']] == [1, -1]


def test_kuhn_poker():
  """The real one: what players know, returns, words that are not actions."""
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task = OpenSpiel()
  task.prepare()
  found = said(task, ['p', 'b', 'p'])
  cards = [text[1] for text in found[0]['observation']]
  assert len(set(cards)) == 2
  assert [r['observation'] for r in found] == [
    [f'0{cards[0]}>', f'1{cards[1]}>'],
    ['', 'p>'],
    ['b>', ''],
    ['', ''],
  ]
  assert [one['reward'] for one in found[-1]['rewards']] == [-1, 1]
  assert [r['state'] for r in found[:3]] == [
    cards[0],
    f'{cards[1]}p',
    f'{cards[0]}pb',
  ]
  wrong = said(task, ['p', 'check'])[-1]
  assert wrong['done']
  assert [(r['reward'], r['illegal']) for r in wrong['rewards']] == [
    (0.5, 0),
    (-1.5, 1),
  ]
  with pytest.raises(ValueError, match='share their first letters'):
    OpenSpiel(name='tic_tac_toe').prepare()
  with pytest.raises(ValueError, match='players = 3, but kuhn_poker has 2'):
    OpenSpiel(players=3).prepare()


def test_whole_words_as_pieces():
  """TicTacToe, whose moves share their first letter: each is one token."""
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  moves = [f'{p}({i},{j})' for p in 'xo' for i in '012' for j in '012']
  pieces = (*'012345678', '>', ', ', *moves)
  task = OpenSpiel(name='tic_tac_toe', letters=False, alphabet=pieces)
  task.prepare()
  found = said(task, ['x(0,0)', 'o(1,1)', 'x(0,1)', 'o(2,2)', 'x(0,2)'])
  heard = [r['observation'] for r in found]
  assert heard[:3] == [['0', '1'], ['', '0>'], [', 4>', '']]
  assert [one['reward'] for one in found[-1]['rewards']] == [1, -1]
  ids = PieceTokenizer(pieces).encode('x(0,0), 4>')
  assert len(ids) == 4


def test_exploitability_of_kuhn_poker():
  """NashConv 11/12 of the uniform policy, 0 at an equilibrium (a = 1/3)."""
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task = OpenSpiel()
  found = information_states.situations(task)
  assert len(found) == 12
  texts = {(one.player, one.key): one.texts for one in found}
  assert texts[0, '2pb'] == ('02>', 'p', 'b>') and texts[1, '1p'] == ('11>p>',)
  table = {key: {'p': 0.5, 'b': 0.5} for key in texts}
  assert information_states.nash_conv(task, table) == pytest.approx(11 / 12)
  a, bets = 1 / 3, {'0pb': 0, '1': 0, '2pb': 1, '1p': 0, '2p': 1, '0b': 0}
  bets |= {'0': a, '2': 3 * a, '1pb': a + 1 / 3, '0p': 1 / 3, '1b': 1 / 3}
  bets['2b'] = 1
  table = {key: {'p': 1 - bets[key[1]], 'b': bets[key[1]]} for key in texts}
  assert information_states.nash_conv(task, table) == pytest.approx(0, abs=1e-9)
