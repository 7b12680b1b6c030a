"""Modules of the user: found by path or name, and never by a file of a run."""

import dataclasses
import json
import pickle
import re
import subprocess
import sys

import pytest

from configs.methods import grpo
from configs.worlds import bandit
from rl_jax import overrides, serialization
from rl_jax.config import EvaluationConfig
from rl_jax.runs import directory
from rl_jax.tasks import EvaluationSet
from rl_jax.tasks.base import Task

TASK = """
import dataclasses
from rl_jax.worlds import Bandit
from parts import BONUS

@dataclasses.dataclass(frozen=True)
class Letters(Bandit):
  bonus: float = BONUS

def short(example, response):
  return float(len(response) < 2)
"""


@pytest.fixture
def folder(tmp_path):
  """A folder of the user with two modules; not the working directory."""
  (tmp_path / 'letters.py').write_text(TASK)
  (tmp_path / 'parts.py').write_text('BONUS = 0.25\n')
  return tmp_path


def test_a_file_is_a_module_with_its_neighbours(user_modules, folder):
  """One module for one file, by whatever path; it can be pickled."""
  module = user_modules.add(str(folder / 'letters.py'))
  assert module.Letters().bonus == 0.25 and module.__name__ == 'letters'
  assert user_modules.load(str(folder / '..' / folder.name / 'letters.py')) is (
    module
  )
  assert {'letters', 'parts'} == set(user_modules.files())
  assert pickle.loads(pickle.dumps(module.Letters())) == module.Letters()
  assert sys.path[-1] == str(folder)
  assert not (folder / '__pycache__').exists()


def test_a_file_that_has_changed_is_another_module(user_modules, folder):
  """A file of the same length, changed within the same second, counts, too."""
  old = user_modules.load(str(folder / 'letters.py'))
  text = (folder / 'letters.py').read_text()
  (folder / 'letters.py').write_text(text.replace('< 2', '< 9'))
  new = user_modules.load(str(folder / 'letters.py'))
  assert old.short(None, 'abc') == 0.0 and new.short(None, 'abc') == 1.0
  with pytest.raises(ValueError, match='Letters is another object by now'):
    serialization.check(old.Letters())


def test_names_that_are_taken_are_left_alone(user_modules, tmp_path):
  """A file json.py, and a second file of one name in another folder."""
  for name in ('json.py', 'other/parts.py', 'third/parts.py'):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(f'NAME = {name!r}\n')
  found = [
    user_modules.load(str(tmp_path / name))
    for name in ('json.py', 'other/parts.py', 'third/parts.py')
  ]
  assert sys.modules['json'] is json and found[0].NAME == 'json.py'
  assert found[0].__name__ == 'user_json'
  assert [module.NAME for module in found[1:]] == [
    'other/parts.py',
    'third/parts.py',
  ]


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('def f(:\n', r'bad.py cannot be imported: SyntaxError: .*bad.py:1\)'),
    ('\nimport nowhere_at_all\n', r"No module named 'nowhere.*bad.py:2\)"),
    ('x = 1\nx / 0\n', r'ZeroDivisionError: division by zero .*bad.py:2\)'),
    ('raise SystemExit(3)', r'SystemExit: 3 .*bad.py:1\)'),
  ],
)
def test_a_file_that_fails_is_named_with_the_line(
  user_modules, tmp_path, text, message
):
  (tmp_path / 'bad.py').write_text(text)
  with pytest.raises(ValueError, match=message):
    user_modules.add(str(tmp_path / 'bad.py'))
  assert not user_modules.files() and 'bad' not in sys.modules


@pytest.mark.parametrize(
  ('text', 'today'),
  [
    ('from rl_jax.tasks.bandit import Bandit', 'rl_jax.worlds.bandit'),
    ('import rl_jax.rollouts.engine', 'rl_jax.decoding.engine'),
    ('from rl_jax.rollouts import engine', 'rl_jax.decoding.engine'),
    ('from rl_jax.tasks import Bandit', 'rl_jax.worlds.bandit.Bandit'),
    (
      'from rl_jax.tasks.base import Logged',
      'rl_jax.tasks.base.RecordedResponse',
    ),
  ],
)
def test_what_has_moved_is_named_where_it_is(
  user_modules, tmp_path, text, today
):
  """A file of the user imports what an earlier version had elsewhere."""
  (tmp_path / 'former.py').write_text(text)
  with pytest.raises(ValueError, match=f'; today it is {re.escape(today)}$'):
    user_modules.add(str(tmp_path / 'former.py'))


def test_what_was_never_there_gets_no_hint(user_modules, tmp_path):
  """No module and no class has the name."""
  (tmp_path / 'wrong.py').write_text('from rl_jax.tasks import Bandot')
  with pytest.raises(ValueError, match=r'wrong\.py:1\)$'):
    user_modules.add(str(tmp_path / 'wrong.py'))


def test_what_is_not_there_is_named_as_it_was_typed(user_modules):
  with pytest.raises(FileNotFoundError, match=r'^\./none/x.py: no such file'):
    user_modules.add('./none/x.py')
  with pytest.raises(ValueError, match='nowhere_at_all cannot be imported'):
    user_modules.add('nowhere_at_all')


def test_recorded_by_name_file_and_hash_and_read_elsewhere(
  user_modules, folder, tmp_path_factory
):
  """The content of a file counts, not its place."""
  task = user_modules.load(str(folder / 'letters.py')).Letters(num_contexts=3)
  text = serialization.to_json(task)
  value = json.loads(text)
  assert value['class'] == 'letters.Letters'
  assert value['from']['letters']['path'] == str(folder / 'letters.py')
  assert len(value['from']['letters']['sha256']) == 64
  parts = user_modules.files()['parts'].sha256
  assert value['from']['letters']['beside'] == {'parts': parts}
  digest = serialization.digest(task)

  other = tmp_path_factory.mktemp('other')
  for name in ('letters', 'parts'):
    (folder / f'{name}.py').rename(other / f'{name}.py')
    user_modules._files.pop(name)
    sys.modules.pop(name)
  with pytest.raises(ValueError) as error:
    serialization.from_json(text)
  hint = f'add --import={folder}/letters.py (or its new place)'
  assert 'refusing to build' in str(error.value) and hint in str(error.value)
  assert 'letters' not in sys.modules

  module = user_modules.add(str(other / 'letters.py'))
  again = serialization.from_json(text)
  assert again == module.Letters(num_contexts=3)
  assert serialization.changed_files(text) == []
  assert serialization.digest(again) == digest

  (other / 'parts.py').write_text('BONUS = 0.5\n')
  user_modules._files.clear()
  for name in ('letters', 'parts'):
    sys.modules.pop(name)
  module = user_modules.load(str(other / 'letters.py'))
  (line,) = serialization.changed_files(text)
  assert re.fullmatch(r': sha256 \w+ -> sha256 \w+ \(.*parts.py\)', line)
  assert serialization.digest(module.Letters(num_contexts=3)) != digest
  (other / 'parts.py').write_text('BONUS = 0.25\n')
  user_modules._files.clear()
  for name in ('letters', 'parts'):
    sys.modules.pop(name)

  (other / 'letters.py').write_text(TASK + '# another line\n')
  module = user_modules.load(str(other / 'letters.py'))
  (line,) = serialization.changed_files(text)
  assert re.fullmatch(r': sha256 \w+ -> sha256 \w+ \(.*letters.py\)', line)
  assert serialization.digest(module.Letters(num_contexts=3)) != digest


def test_a_changed_file_stops_a_run_that_is_continued(
  user_modules, folder, toy, caplog
):
  """Both hashes are named; to look at the run it is a warning."""
  from configs.worlds import bandit

  config = bandit.get_config(toy.get_method('grpo'))
  path, run = folder / 'letters.py', str(folder / 'run')
  task = user_modules.load(str(path)).Letters()
  directory.write_config(dataclasses.replace(config, task=task), run)
  directory.check(dataclasses.replace(config, task=task), run)
  path.write_text(TASK + '# another line\n')
  task = user_modules.load(str(path)).Letters()
  changed = dataclasses.replace(config, task=task)
  match = r'task: sha256 \w+ -> sha256 \w+ \(.*letters.py\)'
  with pytest.raises(ValueError, match=match):
    directory.check(changed, run)
  assert directory.check(changed, run, ['task']).lines
  assert directory.saved_config(run).task == task
  assert 'began: task: sha256' in caplog.text


def test_what_needs_no_code_is_read_without_it(user_modules, folder):
  """A stand-in has the fields; what else is asked of it says what to import."""
  task = user_modules.load(str(folder / 'letters.py')).Letters(num_contexts=3)
  config = dataclasses.replace(
    bandit.get_config(grpo.get_method()),
    task=task,
    evaluation=EvaluationConfig(sets=(EvaluationSet(name='own', task=task),)),
  )
  text = serialization.to_json(config)
  for name in ('letters', 'parts'):
    user_modules._files.pop(name)
    sys.modules.pop(name)
  with pytest.raises(ValueError, match='refusing to build'):
    serialization.from_json(text)
  found = serialization.from_json(text, stand_ins=True)
  assert 'letters' not in sys.modules
  assert isinstance(found.task, serialization.StandIn)
  assert type(found.task).__name__ == 'Letters'
  assert found.task.num_contexts == 3 and found.seed == config.seed
  assert found == serialization.from_json(text, stand_ins=True)
  assert serialization.to_json(found) == text
  hint = f'add --import={folder}/letters.py'
  for use in (
    lambda: found.task.num_prompts('train'),
    lambda: found.evaluation.sets[0].task.example('test', 0),
    lambda: hasattr(found.task, 'alphabet'),
    lambda: found.task(1),
    lambda: serialization.digest(found),
  ):
    with pytest.raises(ValueError, match=re.escape(hint)):
      use()
  # Neither damage nor a class of another version becomes a stand-in.
  for path in ('losses.PPOClipp', 'rl_jax.losses.Gone', 'Gone'):
    with pytest.raises(ValueError, match='refusing to build'):
      serialization.from_json(json.dumps({'class': path}), stand_ins=True)
  with pytest.raises(ValueError, match='group_size = 0'):
    text = '{"class": "config.RolloutConfig", "group_size": 0}'
    serialization.from_json(text, stand_ins=True)


def test_modules_by_name_are_known_when_they_are_named(
  user_modules, folder, monkeypatch
):
  """An importable module is recorded by its name only."""
  monkeypatch.setattr(sys, 'path', [*sys.path, str(folder)])
  module = user_modules.add('letters')
  text = serialization.to_json(module.Letters())
  assert 'from' not in json.loads(text)
  assert serialization.from_json(text) == module.Letters()
  piece = overrides.parse_piece('Letters(num_contexts=3)')
  assert piece == module.Letters(num_contexts=3)
  user_modules._named.clear()
  with pytest.raises(ValueError, match='so add --import=letters$'):
    serialization.from_json(text)
  with pytest.raises(ValueError, match="unknown piece: 'Letters'"):
    overrides.parse_piece('Letters(num_contexts=3)')


def test_a_name_of_this_library_is_refused(user_modules, tmp_path):
  """The class that --add names must not depend on the order."""
  (tmp_path / 'own.py').write_text(
    'import dataclasses\n@dataclasses.dataclass(frozen=True)\n'
    'class PPOClip:\n  x: int = 1\n'
  )
  own = user_modules.load(str(tmp_path / 'own.py'))
  with pytest.raises(ValueError, match='PPOClip is a name of rl_jax: rename'):
    serialization.check({'part': own.PPOClip()})
  with pytest.raises(ValueError, match="named 'PPOClip'.* and that of own;"):
    overrides.parse_piece('PPOClip()')


@dataclasses.dataclass
class Thawed:
  """Not frozen."""

  x: int = 1


@dataclasses.dataclass(frozen=True)
class Holder:
  """Holds anything."""

  part: object = None


class Plain(Task):
  """A task that is not a dataclass."""

  def num_prompts(self, split):
    """Unused."""

  def example(self, split, index):
    """Unused."""

  def reward(self, example, response):
    """Unused."""


def local():
  """An object of a class that only this call has."""

  @dataclasses.dataclass(frozen=True)
  class Local:
    x: int = 1

  return Local()


@pytest.mark.parametrize(
  ('part', 'message'),
  [
    (Thawed(), r'part: Thawed is not frozen: write @dataclasses.dataclass\(fr'),
    (Plain(), r'part: cannot write Plain as JSON: .*; write @dataclasses'),
    (local(), r'part: .*local.<locals>.Local is not defined at the top level'),
    (lambda e, r: 0.0, r'part: cannot write function .*tasks.RewardFunctions'),
    ({'a': (1, Thawed())}, r'part.a.1: Thawed is not frozen'),
    ({1: 2.0}, r'part: only dicts with text as keys'),
  ],
)
def test_what_could_not_be_read_back_is_an_error_at_start(part, message):
  with pytest.raises(ValueError, match=message):
    serialization.check(Holder(part))


def test_an_interactive_session_has_nothing_to_read_back():
  """`python -c` stands for a notebook: its main module has no file."""
  code = (
    'import dataclasses\n'
    'from rl_jax import serialization\n'
    'from rl_jax.worlds import Bandit\n'
    'class Mine(Bandit): pass\n'
    'serialization.check(Bandit())\n'
    'serialization.check(Mine())\n'
  )
  done = subprocess.run(
    [sys.executable, '-c', code], capture_output=True, text=True
  )
  assert 'interactive session cannot be restored later' in done.stderr
