"""The folders of pieces re-export by name what their files define.

`make format` (this file as a program) writes their `__init__.py`. It reads the
files and imports none of them, so that it also works where a face is wrong.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = (
  *(f'rl_jax/pieces/{name}' for name in ('credit', 'logits', 'losses')),
  *(f'rl_jax/pieces/{name}' for name in ('preferences', 'regularizers')),
  *(f'rl_jax/pieces/{name}' for name in ('selection', 'shaping')),
  *(f'rl_jax/pieces/{name}' for name in ('statistics', 'weights')),
  'rl_jax/rollouts/wrappers',
)
WIDTH = 80  # of a line


def decorator(node):
  """'dataclass' for the node of @dataclasses.dataclass(frozen=True)."""
  node = node.func if isinstance(node, ast.Call) else node
  return ast.unparse(node).rpartition('.')[2]


def classes(path):
  """The names of the public pieces and dataclasses that a file defines."""
  return [
    node.name
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.ClassDef)
    and not node.name.startswith('_')
    and {'piece', 'statistic', 'dataclass'}
    & {*map(decorator, node.decorator_list)}
  ]


def face(root, folder):
  """The text that the `__init__.py` of a folder must hold.

  Raises:
    ValueError: two files define a class of the same name.
  """
  package, owners, lines = folder.replace('/', '.'), {}, []
  for path in sorted((root / folder).glob('*.py')):
    for name in sorted(classes(path)):
      if name in owners:
        raise ValueError(
          f'{folder}: {owners[name]} and {path.name} both define {name}'
        )
      owners[name] = path.name
      line = f'from {package}.{path.stem} import {name} as {name}'
      if len(line) > WIDTH:
        head = line.partition(name + ' as')[0]
        line = f'{head}(\n  {name} as {name},\n)'
      lines.append(line)
  text = (root / folder / '__init__.py').read_text()
  docstring = ast.get_docstring(ast.parse(text), clean=False)
  return '\n'.join([f'"""{docstring}"""', '', *lines, ''])


def write(root):
  """Writes the `__init__.py` of every folder of pieces that has changed."""
  for folder in FOLDERS:
    path, text = root / folder / '__init__.py', face(root, folder)
    if path.read_text() != text:
      path.write_text(text)
      print(f'wrote {folder}/__init__.py')


@pytest.mark.parametrize('folder', FOLDERS)
def test_faces_are_those_of_the_files(folder):
  """`make format` would change nothing."""
  committed = (ROOT / folder / '__init__.py').read_text()
  assert face(ROOT, folder) == committed, 'the face is old: run make format'


def test_every_folder_of_pieces_has_a_face():
  """A new folder is not forgotten; `ops` holds functions only."""
  folders = {
    path.parent.relative_to(ROOT).as_posix()
    for path in (ROOT / 'rl_jax' / 'pieces').glob('*/__init__.py')
  }
  assert folders - {'rl_jax/pieces/ops'} == {
    folder for folder in FOLDERS if folder.startswith('rl_jax/pieces/')
  }


@pytest.fixture
def root(tmp_path):
  """A tree of the folders of pieces, each with an empty face."""
  for folder in FOLDERS:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / '__init__.py').write_text('"""What they do."""\n')
  return tmp_path


def test_only_public_classes_of_the_files_are_found(root):
  """Neither imported pieces nor private ones nor plain classes."""
  (root / 'rl_jax/pieces/losses/one.py').write_text(
    'from rl_jax.pieces.credit import GAE\n'
    '@piece\nclass One:\n  pass\n'
    '@dataclasses.dataclass(frozen=True)\nclass Another:\n  pass\n'
    '@piece\nclass _Hidden:\n  pass\n'
    'class Plain:\n  pass\n'
  )
  write(root)
  assert (root / 'rl_jax/pieces/losses/__init__.py').read_text() == (
    '"""What they do."""\n\n'
    'from rl_jax.pieces.losses.one import Another as Another\n'
    'from rl_jax.pieces.losses.one import One as One\n'
  )


def test_long_lines_are_wrapped_as_the_formatter_does(root):
  """More than 80 characters."""
  name = 'A' * 40
  path = root / 'rl_jax/pieces/weights/one.py'
  path.write_text(f'@piece\nclass {name}:\n  pass\n')
  assert face(root, 'rl_jax/pieces/weights').endswith(
    f'from rl_jax.pieces.weights.one import (\n  {name} as {name},\n)\n'
  )


def test_two_pieces_of_one_name_are_an_error(root):
  """The message names both files."""
  for stem in ('one', 'two'):
    path = root / f'rl_jax/pieces/losses/{stem}.py'
    path.write_text('@piece\nclass Same:\n  pass\n')
  with pytest.raises(ValueError, match='one.py and two.py both define Same'):
    face(root, 'rl_jax/pieces/losses')


if __name__ == '__main__':
  write(ROOT)
