"""The versions that are tested lie in the ranges that are promised."""

import ast
import importlib.metadata
import pathlib
import sys
import tomllib

from packaging.requirements import Requirement
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
EXTRAS = PROJECT['optional-dependencies']
# Peers that benchmarks are compared with, in their own environments.
PEERS = {'torch', 'transformers', 'trl', 'datasets', 'tunix'}


def pins(name):
  """Distribution -> version, of the lines NAME==VERSION of a file."""
  lines = (ROOT / name).read_text().splitlines()
  found = [line.split('==') for line in lines if line and line[0] not in '#-']
  assert all(len(pair) == 2 for pair in found), found
  return dict(found)


def ranges(lines):
  """Distribution -> what versions of it are taken."""
  found = [Requirement(line) for line in lines]
  return {requirement.name: requirement.specifier for requirement in found}


def test_requirements_are_the_dependencies():
  """Neither more nor less, and one constraints file has all of them."""
  assert (
    pins('requirements.txt').keys() == ranges(PROJECT['dependencies']).keys()
  )
  constraints = (ROOT / 'constraints.txt').read_text()
  assert '\n--constraint requirements.txt\n' in constraints
  assert not pins('requirements.txt').keys() & pins('constraints.txt').keys()


def test_every_extra_is_pinned():
  """And nothing else; accelerators are extras of jax."""
  names = {n for lines in EXTRAS.values() for n in ranges(lines)} - {'jax'}
  assert (
    pins('constraints.txt').keys() == names - pins('requirements.txt').keys()
  )


@pytest.mark.parametrize('extra', ['', *EXTRAS])
def test_what_is_tested_lies_in_the_ranges(extra):
  pinned = pins('requirements.txt') | pins('constraints.txt')
  for name, taken in ranges(
    EXTRAS[extra] if extra else PROJECT['dependencies']
  ).items():
    assert taken.contains(pinned[name]), f'{name}=={pinned[name]}: {taken}'
    assert extra == 'dev' or '==' not in str(taken), f'{name}: give a range'


def test_accelerators_take_the_same_jax():
  for extra in ('cuda12', 'cuda13', 'tpu'):
    (line,) = EXTRAS[extra]
    assert Requirement(line).extras == {extra}
    assert ranges([line])['jax'] == ranges(PROJECT['dependencies'])['jax']


def test_what_is_imported_is_declared():
  """Third-party modules of rl_jax, experiments and configs."""
  declared = {*ranges(PROJECT['dependencies'])}
  declared |= {n for lines in EXTRAS.values() for n in ranges(lines)}
  declared = {name.lower().replace('_', '-') for name in declared}
  # Where they are not installed.
  owners = {
    'pyspiel': ['open_spiel'],
    'aviary': ['fhaviary'],
    'openenv': ['openenv-core'],
  }
  owners |= importlib.metadata.packages_distributions()
  ours = {'rl_jax', 'experiments', 'configs', *sys.stdlib_module_names}
  missing = {}
  for folder in ('rl_jax', 'experiments', 'configs'):
    for path in sorted((ROOT / folder).rglob('*.py')):
      for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
          names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
          names = [node.module]
        for name in {name.split('.')[0] for name in names} - ours - PEERS:
          found = owners.get(name, [name])
          found = {owner.lower().replace('_', '-') for owner in found}
          beside = path.with_name(f'{name}.py').exists()  # of the sandbox
          if not found & declared and not beside:
            missing[name] = str(path)
  assert not missing
