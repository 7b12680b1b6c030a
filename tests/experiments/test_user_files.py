"""A user's script, task, piece and reward, all outside of this repository.

One run from a script; then the binaries continue, evaluate and show it, from
another working directory and after the files have moved.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from experiments.flags import configuration
from rl_jax import serialization

ROOT = pathlib.Path(__file__).resolve().parents[2]

PIECES = """
import jax.numpy as jnp
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight

@piece
class HalfWeight(Weight):
  scale: float = 0.5
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    return LossOut(jnp.full_like(ctx.traj.advantages_BT, self.scale), {})
"""
CONFIG = """
import dataclasses
from configs.worlds import bandit
from task import Letters
VARIANTS = {
  'half': ('task.bonus=0.5', 'seed=2'),
  'twice': ('method.losses+=EntropyBonus(coef=0.5)',),
}

def get_config(method):
  return dataclasses.replace(
    bandit.get_config(method), task=Letters(), iterations=2
  )
"""
METHOD = """
import dataclasses
from configs.methods import grpo
import own_pieces
VARIANTS = {'quarter': ('weights.HalfWeight.scale=0.25',)}

def get_method():
  weights = (own_pieces.HalfWeight(),)
  return dataclasses.replace(grpo.get_method(), weights=weights)
"""
TASK = """
import dataclasses
from rl_jax.worlds import Bandit

@dataclasses.dataclass(frozen=True)
class Letters(Bandit):
  bonus: float = 0.25

  def reward(self, example, response):
    return super().reward(example, response) | {'bonus': self.bonus}

def short(example, response):
  return {'reward': len(response) == 1, 'length': len(response)}
"""
# What a notebook does, as a program: its own class is one of __main__.
SCRIPT = """
import dataclasses
import pathlib
from experiments.flags import configuration
from rl_jax.runs.loop import Trainer
from rl_jax.tasks import RewardFunctions
from task import Letters, short

@dataclasses.dataclass(frozen=True)
class Renamed(Letters):
  pass

if __name__ == '__main__':
  here = str(pathlib.Path(__file__).parent)
  config = configuration.build(
    here + '/config.py',
    here + '/method.py@quarter',
    ['rollout.num_prompts=2', 'evaluation.every=0'],
  )
  task = RewardFunctions(Renamed(), {short: 1.0}, task_weight=0.5)
  Trainer(dataclasses.replace(config, task=task), 'run').run()
"""
FILES = {
  'own_pieces.py': PIECES,
  'config.py': CONFIG,
  'method.py': METHOD,
  'task.py': TASK,
  'script.py': SCRIPT,
}


def write_files(folder):
  """All files of the user."""
  folder.mkdir()
  for name, text in FILES.items():
    (folder / name).write_text(text)


def call(cwd, *arguments):
  """The finished Python process."""
  environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
  return subprocess.run(
    [sys.executable, *map(str, arguments)],
    cwd=cwd,
    env=environment,
    capture_output=True,
    text=True,
  )


@pytest.fixture(scope='module')
def place(tmp_path_factory):
  """The work directory is `run` in `cwd`; the files have moved to `new`."""
  folder = tmp_path_factory.mktemp('user')
  write_files(folder / 'old')
  (folder / 'cwd').mkdir()
  done = call(folder / 'cwd', '../old/script.py')
  assert done.returncode == 0, done.stderr
  (folder / 'old').rename(folder / 'new')
  return folder


@pytest.mark.slow
def test_a_run_of_a_script_is_continued_by_a_binary(place):
  """With the work directory's own configuration, and the files named."""
  run = place / 'cwd' / 'run'
  recorded = json.loads((run / 'experiment.json').read_text())['task']
  assert recorded['task']['class'] == 'script.Renamed'
  assert recorded['task']['from']['script']['path'].endswith('/old/script.py')
  train = [
    *('-m', 'experiments.train', '--config=run/experiment.json'),
    *('--set=iterations=3', '--workdir=run'),
  ]
  done = call(place / 'cwd', *train)
  assert done.returncode == 2
  (line,) = done.stderr.strip().splitlines()
  hint = f'--import={place}/old/task.py'
  assert line.startswith('error: run/experiment.json: ') and hint in line
  named = [f'--import=../new/{n}.py' for n in ('script', 'task', 'own_pieces')]
  done = call(place / 'cwd', *train, *named)
  assert done.returncode == 0, done.stderr
  rows = (run / 'metrics.jsonl').read_text().splitlines()
  last = json.loads(rows[-1])
  assert len(rows) == 3 and last['reward/bonus'] == 0.25
  mean = last['reward/short'] + 0.5 * last['reward/outcome']
  assert last['reward/mean'] == pytest.approx(mean)


@pytest.mark.slow
def test_it_is_evaluated_when_its_module_is_named(place):
  """One line says how; the policy is judged by the user's task."""
  evaluate = [
    *('-m', 'experiments.evaluate', '--checkpoint=run', '--max_new_tokens=2'),
    '--data=run/experiment.json',
  ]
  named = [f'--import=../new/{n}.py' for n in ('script', 'task', 'own_pieces')]
  done = call(place / 'cwd', *evaluate, *named)
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout)['n'] == 8


@pytest.mark.slow
def test_weights_and_curves_need_no_code_of_the_user(place):
  """Nothing is imported; where the task must judge, one line says what."""
  (place / 'cwd/rows.jsonl').write_text('{"q": "a", "a": "b"}\n' * 4)
  checkpoint = '--checkpoint=run'
  for arguments in (
    ('evaluate', checkpoint, '--data=rows.jsonl', '--question={q}')
    + ('--answer={a}', '--verifier=text'),
    ('export_weights', checkpoint, '--out=hf'),
    ('plot', '--workdir=run', '--out=curves.png'),
    ('report', '--workdir=run', '--out=page.html'),
  ):
    done = call(
      place / 'cwd', '-m', f'experiments.{arguments[0]}', *arguments[1:]
    )
    assert done.returncode == 0, done.stderr
    assert '--import' not in done.stderr
  page = (place / 'cwd/page.html').read_text()
  assert '--import' not in page and 'HalfWeight' in page
  done = call(place / 'cwd', '-m', 'experiments.evaluate', checkpoint)
  assert done.returncode == 2
  (line,) = done.stderr.strip().splitlines()
  assert f'--import={place}/old/script.py' in line


@pytest.fixture
def mine(user_modules, tmp_path, monkeypatch):
  """The files of the user, seen from another working directory."""
  write_files(tmp_path / 'mine')
  (tmp_path / 'cwd').mkdir()
  monkeypatch.chdir(tmp_path / 'cwd')
  return tmp_path / 'mine'


def test_configurations_and_methods_are_files_anywhere(mine):
  """Relative and absolute paths, variants, pieces by --add, rewards."""
  config = configuration.build('../mine/config.py', f'{mine}/method.py@quarter')
  assert config.task.bonus == 0.25
  assert config.method.weights[0].scale == 0.25
  config = configuration.build(f'{mine}/config.py@half', None, ['seed=3'])
  assert (config.task.bonus, config.seed) == (0.5, 3)
  config = configuration.build('../mine/config.py@twice', 'rloo')
  assert type(config.method.losses[-1]).__name__ == 'EntropyBonus'
  config = configuration.build(
    f'{mine}/config.py',
    'rloo',
    ['task.bonus=0.5', 'method.weights.HalfWeight.scale=0.125'],
    ['method.weights=HalfWeight()'],
  )
  assert config.task.bonus == 0.5 and config.method.weights[0].scale == 0.125
  config = configuration.with_rewards(
    config, ['../mine/task.py:short=2', 'task=0.5']
  )
  assert config.task.functions == {'task:short': 2.0}
  assert config.task.task_weight == 0.5 and config.task.task.bonus == 0.5


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (('../mine/confg.py',), "confg.py: no such file. .*'../mine/config.py'"),
    (('../mine/config',), "unknown config: .*'../mine/config.py'.*NAME.py"),
    (('bandt',), "'bandit'.* Known: advised_keydoor, .*NAME.py"),
    (('../mine/config.py@hlaf',), "'hlaf'.* 'half'.* Known: half, twice"),
    (('bandit@half',), "variant of bandit: 'half'. Known: none"),
    (('../mine/task.py',), r'task.py has no function get_config\(method\)'),
    (('bandit', '../mine/config.py'), r'config.py has no function get_method'),
    (('bandit', '../mine/method.py@half'), "'half'.* Known: quarter"),
    (('../mine/none.json',), 'none.json'),
    (('../mine/cut.json',), '../mine/cut.json is damaged: '),
    (('../mine/empty.json',), '../mine/empty.json is damaged: '),
    (
      ('../mine/list.json',),
      'list.json: expected an ExperimentConfig, got',
    ),
  ],
)
def test_mistakes_are_named_as_they_were_typed(mine, arguments, message):
  text = serialization.to_json(configuration.build('bandit'))
  (mine / 'cut.json').write_text(text[:200])
  (mine / 'empty.json').write_text('')
  (mine / 'list.json').write_text('[]')
  with pytest.raises((ValueError, FileNotFoundError), match=message):
    configuration.build(*arguments)


@pytest.mark.parametrize(
  ('rewards', 'message'),
  [
    (['../mine/task.py:short=much'], "'much' is not a number"),
    (['../mine/task.py:short', '../mine/task.py:short=2'], 'given twice'),
    (['../mine/task.py'], 'expected PATH.py:FUNCTION'),
    (['task=1'], 'functions is empty'),
  ],
)
def test_wrong_rewards_are_named(mine, rewards, message):
  with pytest.raises(ValueError, match=message):
    configuration.with_rewards(configuration.build('bandit'), rewards)


def test_a_configuration_is_a_file_in_and_out(mine):
  """Changes apply on top; the method stays unless one is given."""
  config = configuration.build('bandit', 'dapo', ['seed=5'])
  (mine / 'my.json').write_text(serialization.to_json(config))
  path = str(mine / 'my.json')
  assert configuration.build(path) == config
  changed = configuration.build(path, 'rloo', ['rollout.group_size=4'])
  assert changed.seed == 5 and changed.rollout.group_size == 4
  assert changed.method == configuration.load_method('rloo')
  with pytest.raises(ValueError, match="'group_sise'"):
    configuration.build(path, None, ['rollout.group_sise=4'])


def test_files_beside_each_other_keep_their_names(mine):
  """configs/worlds/bandit.py is ours from anywhere, unless there is one
  here."""
  assert configuration.build('configs/worlds/bandit.py').task.num_contexts == 8
  pathlib.Path('configs/worlds').mkdir(parents=True)
  shutil.copy(mine / 'config.py', 'configs/worlds/bandit.py')
  shutil.copy(mine / 'task.py', 'configs/worlds/task.py')
  assert configuration.build('configs/worlds/bandit.py').task.bonus == 0.25
  path = ROOT / 'configs/worlds/bandit.py'
  assert not hasattr(configuration.build(str(path)).task, 'bonus')


def test_the_reward_of_the_guide(user_modules, tmp_path, monkeypatch):
  """Its block is a file that --reward takes."""
  guide = (ROOT / 'docs/guides/own_reward.md').read_text()
  (code,) = re.findall(r'```python\n(# my_rewards.py\n.*?)```', guide, re.S)
  monkeypatch.chdir(tmp_path)
  pathlib.Path('my_rewards.py').write_text(code)
  config = configuration.with_rewards(
    configuration.build('bandit'),
    ['my_rewards.py:short_answers=0.2', 'task=1'],
  )
  example = config.task.example('train', 0)
  found = config.task.reward(example, 'abc')
  assert found['short_answers'] == 0.25
  assert found['short_answers/letters'] == 3
  assert config.task.reward_weights == {'outcome': 1.0, 'short_answers': 0.2}
