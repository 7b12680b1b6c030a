"""CONTRIBUTING.md to the letter: its files, in a copy, pass their tests."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# `path`: or `path`, after `line`: and then what to write there.
BLOCK = re.compile(
  r'^`([^`]+)`(?:, after\n`([^`]+)`)?:\n\n```\w+\n(.*?)^```', re.M | re.S
)
# What judges the added files; -k keeps to what is new.
TESTS = (
  'tests/pieces/weights/test_negative_scale.py',
  'tests/pieces/test_contract.py',
  'tests/methods/test_common.py',
  'tests/methods/test_docstrings.py',
  'tests/tasks/test_reversal.py',
  'tests/tasks/test_partial_reversal.py',
  'tests/experiments/test_docstring_commands.py',
  'tests/models/files/test_example_family.py',
  'tests/test_faces.py',
  'tests/test_imports.py',
)
NEW = (
  'negative_scale or NegativeScale or reversal or example_family or '
  'test_imports or test_faces or test_table'
)


def blocks():
  """(path, line or '', text) of every file and line that is shown."""
  return BLOCK.findall((ROOT / 'CONTRIBUTING.md').read_text())


def apply(name, line, text, folder):
  """Writes a file, or inserts the text after the one line of an old one."""
  path = folder / name
  if not line:
    assert not path.exists(), f'{name} exists already'
    path.write_text(text)
    return
  lines = path.read_text().splitlines(keepends=True)
  (place,) = (i for i, old in enumerate(lines) if old.strip() == line)
  path.write_text(''.join([*lines[: place + 1], text, *lines[place + 1 :]]))


def run(folder, *arguments):
  """Python in the copy; its output is the message of a failure."""
  environment = {**os.environ, 'PYTHONPATH': str(folder)}
  result = subprocess.run(
    [sys.executable, *arguments],
    cwd=folder,
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
  return result.stdout


@pytest.fixture(scope='module')
def copy(tmp_path_factory):
  """The repository with every file and line of CONTRIBUTING.md, and faces."""
  folder = tmp_path_factory.mktemp('contributing')
  for name in ('rl_jax', 'configs', 'experiments', 'tests'):
    shutil.copytree(
      ROOT / name, folder / name, ignore=shutil.ignore_patterns('__pycache__')
    )
  for name in ('pyproject.toml', 'README.md', 'CONTRIBUTING.md'):
    shutil.copy(ROOT / name, folder)
  for block in blocks():
    apply(*block, folder)
  run(folder, 'tests/test_faces.py')  # the step of `make format` that writes
  return folder


def test_everything_is_shown():
  """A method, a task, a reward and a model family."""
  places = [path for path, _, _ in blocks()]
  assert len(places) == 13
  for start in (
    *('rl_jax/pieces/', 'configs/methods/', 'tests/pieces/'),
    *('rl_jax/tasks/', 'configs/partial', 'rl_jax/models/'),
  ):
    assert any(place.startswith(start) for place in places), start


@pytest.mark.slow
def test_added_files_pass_their_tests(copy):
  """After the two commands that CONTRIBUTING.md names."""
  command = 'python -m experiments.list_methods --markdown'
  for line in (command, 'make format'):
    assert f'    {line}\n' in (ROOT / 'CONTRIBUTING.md').read_text()
  run(copy, *command.split()[1:])
  output = run(
    copy,
    '-m',
    'pytest',
    '-p',
    'no:cacheprovider',
    '-m',
    'not slow and not devices',
    '-k',
    NEW,
    *TESTS,
  )
  passed = int(re.search(r'(\d+) passed', output)[1])
  assert passed > 40, output


def test_added_files_are_formatted(copy):
  """By the formatter and the rules of the repository."""
  ruff = shutil.which('ruff', path=str(pathlib.Path(sys.executable).parent))
  assert ruff, 'make install'
  for arguments in (('format', '--check', '.'), ('check', '--no-cache', '.')):
    result = subprocess.run(
      [ruff, *arguments], cwd=copy, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr


@pytest.mark.slow
def test_the_added_method_trains_on_the_added_reward(copy, tmp_path):
  """One command, two iterations; both components are measured."""
  run(
    copy,
    '-m',
    'experiments.train',
    '--config=configs/partial_reversal.py',
    '--method=negative_scale',
    '--set=iterations=2',
    f'--workdir={tmp_path}/run',
  )
  metrics = (tmp_path / 'run' / 'metrics.jsonl').read_text()
  assert 'reward/letters' in metrics and 'policy/negative_fraction' in metrics
