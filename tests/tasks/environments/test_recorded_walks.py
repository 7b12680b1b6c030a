"""Walks of players that know the solution, and of none."""

import dataclasses
import json
import pathlib
import sys

import numpy as np
import pytest

from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.tasks import GymnasiumText, MiniGrid, RecordedWalks, RenamedWalks
from rl_jax.tasks.environments import Environment, gymnasium_text
from rl_jax.tasks.environments.base import EnvironmentTask, Reply, seed_of
from rl_jax.worlds import Arithmetic, KeyDoor, PlannedKeyDoor, PricedTools

WORDS = ('left', 'down', 'right', 'up')
LINE = GymnasiumText(words=WORDS)
GRID = MiniGrid()


@pytest.fixture(name='line')
def _line(stub):
  """Three steps to the right, of which the last is worth 5, the others -1."""
  return stub('gymnasium')


@pytest.fixture(name='grid')
def _grid(monkeypatch):
  """A ball one or two steps ahead; stand-ins, also of what is installed."""
  monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[2] / 'stubs')
  for name in _loaded():
    monkeypatch.delitem(sys.modules, name)
  yield
  for name in _loaded():
    del sys.modules[name]


def _loaded():
  return [
    x for x in sys.modules if x.split('.')[0] in ('gymnasium', 'minigrid')
  ]


def test_best_returns_by_hand():
  """Action 0 earns 1 and ends; 1 stays, for 0, or with chance 1/2 continues to
  a state that earns 4 and ends. In one step 1; in two 1/2 4 + 1/2 1 = 2.5, with
  discount 1/2 half of it, 1.25; in three 1/2 4 + 1/2 2.5 = 3.25.
  """
  table = {
    0: {
      0: [(1.0, 0, 1.0, True)],
      1: [(0.5, 0, 0.0, False), (0.5, 1, 0.0, False)],
    },
    1: {0: [(1.0, 1, 4.0, True)], 1: [(1.0, 1, 0.0, False)]},
  }
  for steps, discount, best, action in (
    *((1, 1.0, 1.0, 0), (2, 1.0, 2.5, 1), (3, 1.0, 3.25, 1)),
    *((2, 0.5, 1.25, 1), (2, 0.25, 1.0, 0)),
  ):
    value_S, best_S = gymnasium_text.solved_table(table, steps, discount)
    np.testing.assert_allclose(value_S, [best, 4.0])
    assert (best_S[0], best_S[1]) == (action, 0)


def test_the_solution_of_a_table(line):
  """-1 -1 5; two steps do not reach the end."""
  assert [LINE.best_return(n) for n in (2, 3, 9)] == [-2.0, 3.0, 3.0]
  episode = LINE.make(LINE.example('train', 0))
  episode.reset(0)
  assert (episode.commands, episode.solution) == (WORDS, ('right',))


def test_without_a_table_there_is_no_solution(line, monkeypatch):
  class Own(line._Line):
    """Has none."""

    def __init__(self):
      super().__init__()
      del self.P

  monkeypatch.setitem(line.registry, 'Own', Own)
  task = dataclasses.replace(LINE, name='Own')
  with pytest.raises(ValueError, match="name = 'Own' has no table of trans"):
    task.best_return(3)
  with pytest.raises(ValueError, match="name = 'Own' has no table of trans"):
    RecordedWalks(task=task).recorded(task.example('train', 0))


def test_an_environment_is_used_again(line):
  """After its episode, from its beginning, by episodes of the same options."""
  first = LINE.make(LINE.example('train', 0))
  first.reset(0)
  first.step('right')
  env = first.unwrapped
  beside = LINE.make(LINE.example('train', 0))
  assert beside.unwrapped is not env
  first.close()
  first.close()  # changes nothing
  other = dataclasses.replace(LINE, options={'is_slippery': True})
  assert other.make(LINE.example('train', 0)).unwrapped is not env
  again = LINE.make(LINE.example('train', 1))
  assert again.unwrapped is env and again.reset(1).observation == '0\n'
  assert LINE.make(LINE.example('train', 1)).unwrapped is not env


def test_an_environment_that_failed_is_not_used_again(line, monkeypatch):
  first = LINE.make(LINE.example('train', 0))
  first.reset(0)
  env, closed = first.unwrapped, []
  monkeypatch.setattr(env, 'step', lambda action: 1 / 0)
  monkeypatch.setattr(env, 'close', lambda: closed.append(env))
  with pytest.raises(ZeroDivisionError):
    first.step('right')
  first.close()
  assert closed == [env]
  assert LINE.make(LINE.example('train', 1)).unwrapped is not env


def test_walks_are_best_or_random(line):
  """Turns end by their length, or with a token."""
  task = RecordedWalks(task=LINE, noise=0.0, turns=5, num_recorded=2)
  walks = task.recorded(task.example('train', 0))
  assert [walk.turns for walk in walks] == 2 * [
    (('right', '1\n'), ('right', '2\n'), ('right', ''))
  ]
  assert {(w.reward, w.truncated, w.turn_ends) for w in walks} == {
    (3.0, False, True)
  }
  by_length = dataclasses.replace(task, noise=1.0, turns=2, turn_ends=False)
  walks = by_length.recorded(task.example('train', 0))
  assert {(w.truncated, w.turn_ends) for w in walks} == {(True, False)}
  found = dataclasses.replace(task, noise=1.0, turns=9, num_recorded=40)
  said = {
    a for w in found.recorded(task.example('train', 0)) for a, _ in w.turns
  }
  assert said == set(WORDS)


class Cut(EnvironmentTask):
  """Episodes that are truncated at their third step."""

  def make(self, example):
    """Counts; a later step would earn."""
    return CutEpisode()


class CutEpisode(Environment):
  """One of them."""

  commands, solution = ('go',), ('go',)

  def reset(self, seed):
    """At 0."""
    self.steps = 0
    return Reply('0')

  def step(self, action):
    """One further."""
    self.steps += 1
    outcome = {'outcome': float(self.steps > 3)}
    return Reply(str(self.steps), outcome, truncated=self.steps == 3)


def test_walks_end_where_the_episode_is_cut():
  task = RecordedWalks(task=Cut(), noise=0.0, turns=9, num_recorded=1)
  (walk,) = task.recorded(task.example('train', 0))
  assert walk.turns == (('go', '1'), ('go', '2'), ('go', ''))
  assert walk.truncated and walk.reward == 0.0


def test_key_door_is_solved_by_its_words():
  """The shortest way from the start, and from where another action led."""
  task = KeyDoor(words='word')
  for index in range(5):
    example = task.example('train', index)
    episode = task.make(example)
    episode.reset(seed_of(example))
    assert episode.solution == tuple(task.actions(example))
    episode.step('take')
    while episode.solution:
      done = episode.step(episode.solution[0]).done
    assert done


def test_plans_say_what_is_next():
  """A flag for every new sub-goal, in their order; nothing is malformed."""
  task = PlannedKeyDoor()
  example = task.example('train', 0)
  walks = RecordedWalks(task=task, noise=0.0, turns=99, num_recorded=1)
  said = [turn for turn, _ in walks.recorded(example)[0].turns]
  assert ''.join(turn[1] for turn in said if turn[0] == '!') == 'KDG'
  assert [turn[2:] for turn in said] == task.actions(example)
  episode = task.make(example)
  episode.reset(seed_of(example))
  total = [episode.step(turn).rewards for turn in said]
  assert sum(reward['malformed'] + reward['changed'] for reward in total) == 0
  assert total[-1]['outcome'] == 1
  assert len(set(episode.commands)) == 36


@pytest.mark.parametrize(
  'task, text',
  [
    (Arithmetic(), 'RecordedWalks.task = Arithmetic is not an environment'),
    (PricedTools(), 'task = PricedTools: its episodes have no property'),
  ],
)
def test_tasks_without_a_solution_are_named(task, text):
  with pytest.raises(ValueError, match=text):
    RecordedWalks(task=task).recorded(task.example('train', 0))


def test_the_bot_is_told_what_was_done(grid):
  """It advises from where another action has led; () when it gives up."""
  episode = GRID.make(GRID.example('train', 0))
  seed = next(s for s in range(99) if '2 ahead' in episode.reset(s).observation)
  episode.reset(seed)
  assert episode.commands == ('left', 'forward', 'pickup')
  assert episode.solution == episode.solution == ('forward',)
  episode.step('left')
  episode.step('jump')  # no action: nothing was done
  assert episode.solution == ('forward',) and episode.reached == ''
  episode.step('forward')
  assert episode.solution == ('pickup',) and episode.reached == 'red ball'
  assert episode._bot.told == [None, 0, 2]
  assert episode.step('pickup').done and episode.solution == ()
  episode.reset(seed)
  assert episode.solution == ('forward',)


def test_the_bot_knows_grids_of_babyai_alone(grid, monkeypatch):
  episode = GRID.make(GRID.example('train', 0))
  episode.reset(0)
  monkeypatch.delattr(type(episode._grid), 'instrs')
  monkeypatch.setattr(
    type(episode._grid),
    'spec',
    dataclasses.make_dataclass('S', ['id'])('Own'),
    raising=False,
  )
  with pytest.raises(ValueError, match="MiniGrid.name = 'Own': the bot solves"):
    assert episode.solution


def test_random_walks_are_named_by_what_they_reach(grid):
  """They end where the ball is near, after one action at least; held-out
  missions are the grid's own."""
  task = RenamedWalks(turns=2, num_train=30, num_held_out=3)
  tokens, lengths = PieceTokenizer(task.alphabet), set()
  for index in range(30):
    example = task.example('train', index)
    (walk,) = task.recorded(example)
    episode = task.make(example)
    begun = episode.reset(seed_of(example)).observation
    assert begun.startswith('go to the red ball\na red ball ')
    assert tokens.decode(tokens.encode(begun)) == begun
    assert task.target(example) == walk.turns[0][0]
    for action, told in walk.turns[:-1]:
      assert episode.step(action).observation == told != ''
      assert not episode.reached
    last = episode.step(walk.turns[-1][0])
    assert episode.reached == 'red ball' and walk.turns[-1][1] == ''
    # The environment's own mission is to pick it up.
    assert last.done and last.rewards['outcome'] == last.rewards['reward'] == 1
    assert not walk.turn_ends
    lengths.add(len(walk.turns))
  assert lengths == {1, 2}
  held_out = task.example('test', 0)
  told = task.make(held_out).reset(seed_of(held_out)).observation
  assert told.startswith('pick up the ball\n')
  (walk,) = task.recorded(held_out)
  assert walk.turns[-1] == ('pickup', '') and not walk.truncated
  again = RenamedWalks(turns=2, num_train=30, num_held_out=3)
  assert again.recorded(task.example('train', 7)) == task.recorded(
    task.example('train', 7)
  )


def _row(seed, actions, **more):
  turns = [{'action': a + '!', 'understood': a} for a in actions]
  turns.append({'action': 'cut'})  # by a limit, before it was answered
  return {'seed': seed, 'error': None, 'turns': turns, **more}


def test_walks_of_a_log_are_named_by_what_they_reached(grid, tmp_path):
  """Recorded walks come after the random ones; until the thing is first faced,
  without turns that were not actions; what could not be judged, or faces
  nothing, gives none.
  """
  episode = GRID.make(GRID.example('train', 0))
  seeds = [s for s in range(9) if '2 ahead' in episode.reset(s).observation]
  rows = [
    _row(seeds[0], ['left', '', 'forward', 'pickup']),
    _row(seeds[1], ['forward', 'left']),
    _row(seeds[1], ['left', 'left']),
    _row(seeds[1], ['forward'], error='timeout'),
  ]
  log = tmp_path / 'rollouts.jsonl'
  log.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = RenamedWalks(turns=5, num_train=3, num_held_out=2, logs=(str(log),))
  assert (task.num_prompts('train'), task.num_prompts('test')) == (5, 2)
  said = ('left', 'forward'), ('forward',)
  for index, (seed, actions) in enumerate(zip(seeds, said, strict=False), 3):
    example = task.example('train', index)
    (walk,) = task.recorded(example)
    assert seed_of(example) == seed and walk.turns[-1] == (actions[-1], '')
    assert tuple(action for action, _ in walk.turns) == actions
    begun = task.make(example).reset(seed).observation
    assert begun.startswith('go to the red ball\n')
  alone = dataclasses.replace(task, logs=())
  for index in range(3):
    assert alone.example('train', index) == task.example('train', index)


def test_loops_are_left_out(grid, tmp_path):
  """Steps that change nothing, or a goal that is faced at once: no walk."""
  episode = GRID.make(GRID.example('train', 0))
  near, far = (
    next(s for s in range(9) if away in episode.reset(s).observation)
    for away in ('1 ahead', '2 ahead')
  )
  log = tmp_path / 'rollouts.jsonl'
  rows = _row(far, ['left', 'pickup', 'forward']), _row(near, ['left', 'left'])
  log.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = RenamedWalks(num_train=1, logs=(str(log),))

  def walks(task):
    return [
      [action for action, _ in task.recorded(task.example('train', n))[0].turns]
      for n in range(1, task.num_prompts('train'))
    ]

  assert walks(task) == [['left', 'pickup', 'forward'], ['left']]
  direct = dataclasses.replace(task, loops=False)
  assert walks(direct) == [['forward']]
  for index in range(30):
    one = dataclasses.replace(direct, num_train=30, logs=())
    (walk,) = one.recorded(one.example('train', index))
    assert [action for action, _ in walk.turns] == ['forward']


@pytest.mark.parametrize(
  'row, text',
  [
    ({'seed': 1, 'response': 'x'}, 'no seed or no turns'),
    (_row('one', ['left']), 'no seed or no turns'),
    (_row(1, ['fly']), 'fly'),
  ],
)
def test_lines_that_are_no_episodes_are_named(grid, tmp_path, row, text):
  log = tmp_path / 'rollouts.jsonl'
  log.write_text(json.dumps(_row(1, ['left'])) + '\n' + json.dumps(row) + '\n')
  with pytest.raises(
    ValueError, match=f'rollouts.jsonl:2 is not an episode of a grid: {text}'
  ):
    RenamedWalks(logs=(str(log),)).num_prompts('train')


def test_walks_that_reach_nothing_are_an_error(grid, monkeypatch):
  episode = GRID.make(GRID.example('train', 0))
  monkeypatch.setattr(type(episode._grid), 'get', lambda *_: None)
  with pytest.raises(ValueError, match='turns = 1: none of 1000 random walks'):
    RenamedWalks(turns=1).example('train', 0)
