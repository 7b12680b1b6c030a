"""Every piece passes these tests; a new file is found by its folder's face."""

import dataclasses
import functools
import importlib
import pathlib

import pytest

from rl_jax.pieces import roles

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folder -> the base classes that its pieces may have.
ROLES = {
  'credit': (roles.Credit, roles.ValueTarget),
  'logits': (roles.LogitTransform,),
  'losses': (roles.Loss, roles.ValueLoss),
  'preferences': (
    *(roles.Pairs, roles.Score, roles.Link, roles.EdgeWeight),
    *(roles.Loss, roles.Regularizer),
  ),
  'regularizers': (roles.Regularizer,),
  'selection': (roles.Selector, roles.GroupFilter),
  'shaping': (roles.Shaping,),
  'weights': (roles.Weight,),
}
PIECES = [
  (folder, name)
  for folder in ROLES
  for name, value in vars(
    importlib.import_module(f'rl_jax.pieces.{folder}')
  ).items()
  if isinstance(value, type) and dataclasses.is_dataclass(value)
]


@functools.cache
def all_tests() -> str:
  """The text of all test files."""
  paths = sorted((ROOT / 'tests').rglob('test_*.py'))
  return '\n'.join(path.read_text() for path in paths)


def problems(folder: str, cls: type) -> list[str]:
  """The parts that a piece lacks, each with the text to write."""
  name, found = cls.__name__, []
  first = (cls.__doc__ or '').split('\n')[0]
  if first.startswith(f'{name}(') or not first.endswith(('.', ':')):
    found.append(
      'the docstring must begin with one line that is the formula or says what '
      'it does and ends with a full stop; for example\n'
      '    """w_t = 1 where the entropy of the token is large, else 0."""'
    )
  words = [base.__name__ for base in ROLES[folder]]
  if not set(cls.__mro__) & set(ROLES[folder]):
    found.append(
      f'its base class must be {" or ".join(words)}; write\n'
      f'    class {name}({words[0]}):'
    )
  for field in dataclasses.fields(cls):
    leaf = field.metadata.get('pytree_node', True)
    if 'float' in str(field.type) and 'tuple' not in str(field.type):
      if not leaf:
        found.append(f'{field.name} is a number: it must not be static')
    elif leaf and str(field.type) not in ('Any', 'typing.Any'):
      found.append(
        f'{field.name} is not a float: it must be static; write one of\n'
        f'    {field.name}: int = ranged(1, 1, static=True)\n'
        f"    {field.name}: str = chosen('token', ('token', 'row'))\n"
        f'    {field.name}: bool = static(default=False)'
      )
  if f'{name}(' not in all_tests():
    stem = cls.__module__.rpartition('.')[2]
    found.append(
      f'no test makes a {name}: write tests/pieces/{folder}/test_{stem}.py '
      'with a golden example derived by hand, the reduction to a simpler piece '
      'and one invariance'
    )
  return found


@pytest.mark.parametrize('folder, name', PIECES)
def test_pieces_keep_the_contract(folder, name):
  """Docstring, role, what is static, and a test."""
  cls = getattr(importlib.import_module(f'rl_jax.pieces.{folder}'), name)
  found = problems(folder, cls)
  path = cls.__module__.replace('.', '/')
  assert not found, (
    f'{name} in {path}.py breaks the contract of CONTRIBUTING.md:\n\n'
    + '\n\n'.join(found)
  )


def test_the_message_says_what_to_write():
  """A class with every mistake."""

  @dataclasses.dataclass(frozen=True)
  class Unwritten:
    count: int = 3

  text = '\n'.join(problems('weights', Unwritten))
  for part in (
    'the docstring must begin',
    'its base class must be Weight',
    'count: int = ranged(1, 1, static=True)',
    'tests/pieces/weights/test_',
  ):
    assert part in text
