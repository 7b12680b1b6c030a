"""Games in the form of ALFWorld, written by hand."""

import json
import pathlib

import pytest

from experiments.papers import tiny
from rl_jax.tasks import AlfWorld, Reworded
from rl_jax.tasks.environments import alf_world


def put(folder, split, name, game=tiny.GAME):
  path = pathlib.Path(folder) / split / name / alf_world.WRITTEN
  path.parent.mkdir(parents=True)
  path.write_text(json.dumps(game))
  return path


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """Two games to train on, one for each other split."""
  for split, name in (
    ('train', 'b'),
    ('train', 'a'),
    ('valid_seen', 'c'),
    ('valid_unseen', 'd'),
  ):
    put(tmp_path, split, name)
  return str(tmp_path)


def begun(task, index=0):
  example = task.example('train', index)
  episode = task.make(example)
  return episode, episode.reset(example.meta['seed'])


def test_splits_are_folders(folder):
  """Games are in the order of their paths."""
  task = AlfWorld(folder=folder)
  counts = [task.num_prompts(x) for x in ('train', 'validation', 'test')]
  assert counts == [2, 1, 1]
  paths = [task.example('train', n).meta['game'] for n in range(2)]
  assert [pathlib.Path(path).parent.name for path in paths] == ['a', 'b']


def test_a_task_is_solved(folder):
  """Outcome, possible actions without help, and what is impossible."""
  episode, first = begun(AlfWorld(folder=folder))
  assert 'Your task is to' in first.observation
  assert first.info['actions'] == ['go to bed 1', 'go to desk 1']
  reply = episode.step('take pen 1')
  assert reply.rewards == {'outcome': 0.0, 'impossible': 1.0}
  assert reply.observation == 'Nothing happens.\n' and not reply.done
  reply = episode.step(' go  to desk 1 ')
  assert reply.rewards == {'outcome': 0.0, 'impossible': 0.0}
  assert reply.state == 'On the desk 1 is a pen 1.\n'
  reply = episode.step('take pen 1')
  assert reply.done and reply.rewards['outcome'] == 1.0
  episode.close()


def test_every_turn_is_a_message_with_the_actions(folder):
  """The first one, too."""
  task = Reworded(
    task=AlfWorld(folder=folder),
    first='{observation}|{actions}',
    message='{step}|{observation}|{actions}',
  )
  assert task.traits.chat and task.traits.rewrites
  episode, first = begun(task)
  assert first.observation.endswith('|go to bed 1, go to desk 1')
  reply = episode.step('<think></think><action>go to desk 1</action>')
  assert reply.observation == (
    '1|On the desk 1 is a pen 1.|go to bed 1, take pen 1'
  )
  assert reply.rewards['invalid'] == 0.0 and reply.forget


def test_games_of_the_package_are_counted_by_its_rules(tmp_path):
  """Solvable ones, without movable and sliced things."""
  for name, solvable in (
    ('pick-A', True),
    ('pick-B', False),
    ('pick-movable', True),
    ('pick-AppleSliced', True),
  ):
    path = tmp_path / 'train' / name / alf_world.PDDL
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({'solvable': solvable}))
  found = alf_world.games(str(tmp_path), 'train')
  assert [pathlib.Path(path).parent.name for path in found] == ['pick-A']


def test_what_is_missing_is_named(tmp_path):
  with pytest.raises(FileNotFoundError, match='train has no game.tw-pddl and'):
    AlfWorld(folder=str(tmp_path)).num_prompts('train')
  game = {**tiny.GAME, 'won': ['cellar']}
  path = put(tmp_path, 'train', 'a', game)
  with pytest.raises(ValueError, match=r"there are no states \['cellar'\]"):
    alf_world.WrittenGame(str(path))
