"""README tells the truth: tables, script and tree are those of the code."""

import pathlib
import re
import shlex

from experiments import configuration, list_methods
from rl_jax import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = (ROOT / 'README.md').read_text()


def test_table_of_methods_is_fresh():
  """`python -m experiments.list_methods --readme` would change nothing."""
  assert list_methods.with_table(README) == README


def test_script_is_the_file():
  """The forty lines are experiments/pieces_without_loop.py, word for word."""
  text = (ROOT / 'experiments/pieces_without_loop.py').read_text()
  block = README.split('<!-- script: begin -->')[1].split('<!-- script: end')[0]
  assert block.strip() == f'```python\n{text.strip()}\n```'


def test_tree_names_what_exists():
  """Every path of the file tree is there."""
  tree = README.split('## The tree')[1]
  paths = re.findall(r'^    (rl_jax/\S+|\w+/) ', tree, re.MULTILINE)
  assert len(paths) > 20
  missing = [p for p in paths if not (ROOT / p).exists()]
  assert not missing


def test_every_command_names_a_binary():
  """`python -m experiments.NAME` in README is a module."""
  names = set(re.findall(r'experiments\.(\w+)', README))
  assert {'train', 'evaluate', 'list_methods', 'sft'} <= names
  for name in names:
    assert (ROOT / 'experiments' / f'{name}.py').exists(), name


def test_recipes_compose():
  """Each `--method=... --add/--set=...` line of README builds and fits."""
  recipes = re.findall(r'^    (--method=.*)$', README, re.MULTILINE)
  assert len(recipes) >= 3
  for recipe in recipes:
    words = [word.split('=', 1) for word in shlex.split(recipe)]
    (method,) = (value for flag, value in words if flag == '--method')
    config = configuration.build(
      'bandit',
      method,
      [value for flag, value in words if flag == '--set'],
      [value for flag, value in words if flag == '--add'],
    )
    config_lib.validate(config)
    assert config.method != configuration.load_method(method), recipe
