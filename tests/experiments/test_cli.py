"""The command rl-jax, and what an installed package does not do."""

import ast
import json
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

from experiments import cli
from experiments.flags import configuration
from experiments.sweeps import children
from experiments.tables import papers

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As the console script, whose folder is the first place of sys.path.
SCRIPT = 'from experiments.cli import main; main()'
HELP = ROOT / 'tests' / 'experiments' / 'help_pages.py'
SHELLS = sorted((ROOT / 'experiments').rglob('*.sh'))


def path_of(program):
  """The file of a module."""
  return (ROOT / program.replace('.', '/')).with_suffix('.py')


PROGRAMS = sorted(
  str(path.relative_to(ROOT).with_suffix('')).replace('/', '.')
  for path in (ROOT / 'experiments').rglob('*.py')
  if "\nif __name__ == '__main__':" in path.read_text()
)


def run(*arguments, cwd=ROOT, **more):
  """The finished process of `rl-jax ARGUMENTS`."""
  return subprocess.run(
    [sys.executable, '-P', '-c', SCRIPT, *map(str, arguments)],
    cwd=cwd,
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT)},
    capture_output=True,
    text=True,
    **more,
  )


@pytest.fixture
def hiding(tmp_path):
  """A folder with packages of the user's that have the names of ours."""
  for name in ('experiments', 'configs', 'tests'):
    (tmp_path / name).mkdir()
    text = f'raise RuntimeError("{name} of the user")\n'
    (tmp_path / name / '__init__.py').write_text(text)
  return tmp_path


def test_one_page_names_all_programs():
  """Each with what it does; --version is that of the library."""
  done = run('--help')
  assert done.returncode == 0 and not done.stderr
  assert done.stdout == run().stdout == cli.page()
  for name, text in cli.programs().items():
    assert text and text in done.stdout, name
  for commands in cli.GROUPS.values():
    for command in commands:
      assert f'\n  {command} ' in done.stdout
      assert cli.program_of(command).startswith('experiments.')
  assert run('--version').stdout.count('.') == 2


def test_commands_are_found_by_their_names():
  """Also with dashes, of a paper, and in short."""
  found = {
    'export': 'export_weights',
    'import-weights': 'import_weights',
    'prompt-information': 'tools.prompt_information',
    'papers.worlds.acting': 'papers.worlds.acting',
  }
  for command, name in found.items():
    assert cli.program_of(command) == f'experiments.{name}'
  for command in ('cli', 'flags', 'flags.fields.py', '../train', 'papers.no'):
    with pytest.raises(ValueError, match='unknown command'):
      cli.program_of(command)
  done = run('tarin')
  assert done.returncode == 2
  assert done.stderr == (
    "error: unknown command: 'tarin'. Did you mean 'train'? See rl-jax --help\n"
  )


def test_packages_of_the_user_hide_nothing(hiding):
  """And modules of that folder can be imported by name."""
  (hiding / 'my_task.py').write_text('import dataclasses\n')
  done = run(
    'train', '--config=bandit', '--print_config', '--import=my_task', cwd=hiding
  )
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout)['class'] == 'config.ExperimentConfig'


def test_children_are_those_of_this_package(hiding, monkeypatch):
  """A sweep and a pipeline start programs wherever they are."""
  monkeypatch.chdir(hiding)
  assert children.run_all([children.program('methods')]) == [0]


@pytest.mark.parametrize('command', [(), ('--help',), ('train', '--help')])
def test_a_reader_may_stop_reading(command):
  """`| head`: neither a traceback nor another exit code."""
  read, write = os.pipe()
  os.close(read)
  with os.fdopen(write, 'w') as closed:
    done = subprocess.run(
      [sys.executable, '-c', SCRIPT, *command],
      cwd=ROOT,
      env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
      stdout=closed,
      stderr=subprocess.PIPE,
      text=True,
    )
  assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize('path', SHELLS, ids=lambda path: path.stem)
def test_help_of_scripts_starts_nothing(path):
  """It prints the comment at the top, which has a command line."""
  done = subprocess.run(
    ['bash', path, '--help'], capture_output=True, text=True, timeout=60
  )
  assert done.returncode == 0 and not done.stderr
  assert path.name in done.stdout and '#SBATCH' not in done.stdout


@pytest.fixture(scope='module')
def help_pages(tmp_path_factory):
  """{program: [exit code, output, errors, exit code of `| head`, errors]}."""
  done = subprocess.run(
    [sys.executable, HELP, *PROGRAMS],
    cwd=tmp_path_factory.mktemp('help'),
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT)},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


@pytest.mark.parametrize('program', PROGRAMS)
def test_help_of_every_program(help_pages, program):
  """It prints what the program is, starts nothing, and may be cut by `head`.

  Whatever would train compiles something, which is exit code 3 here.
  """
  code, out, errors, code_cut, errors_cut = help_pages[program]
  assert (code, errors) == (0, ''), errors
  docstring = ast.get_docstring(ast.parse(path_of(program).read_text()))
  first = docstring.partition('\n')[0]
  if program == 'experiments.cli':  # whose page lists all others
    first = 'usage: rl-jax COMMAND'
  assert ' '.join(first.split()) in ' '.join(out.split())
  assert (code_cut, errors_cut) == (0, ''), errors_cut


def test_help_of_the_script_without_a_loop_trains_nothing():
  """It has no flags."""
  done = run('pieces_without_loop', '--help', timeout=120)
  assert done.returncode == 0
  assert 'iteration' not in done.stdout and 'usage: ' in done.stdout


def test_an_installed_package_is_not_written(monkeypatch, tmp_path):
  """Programs that need files of the repository say where to run them."""
  monkeypatch.setattr(configuration, 'ROOT', tmp_path)
  with pytest.raises(ValueError, match='--markdown is of files of the repos'):
    configuration.check_clone('--markdown')
  monkeypatch.setattr(papers.sweep_runs, 'load', lambda paper: [])
  with pytest.raises(ValueError, match='--paper=worlds is of files of the re'):
    papers.read('worlds')
  assert not list(tmp_path.iterdir())


def test_the_wheel_holds_neither_results_nor_tests():
  """Three packages with their modules, and the template of the report."""
  project = tomllib.loads((ROOT / 'pyproject.toml').read_text())
  own = project['tool']['setuptools']
  assert own['packages']['find'] == {
    'include': ['rl_jax*', 'experiments*', 'configs*']
  }
  assert own['package-data'] == {
    'rl_jax': ['py.typed'],
    'experiments': ['reports/template/*'],
  }
  assert project['project']['scripts'] == {'rl-jax': 'experiments.cli:main'}
