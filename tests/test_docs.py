"""The documentation is true: its commands and its code are those of the code.

`make docs` checks links and builds it.
"""

import ast
import dataclasses
import importlib.util
import pathlib
import re
import shlex

import pytest

from experiments import check_piece
from experiments.checks import table
from experiments.flags import configuration
from rl_jax.learning import statistics
from rl_jax.types import Trajectories

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / 'docs').rglob('*.md'))
# Files of the reader.
YOURS = ('my_config.py', 'guess.py', 'my_pieces.py')
PAGES = [p for p in PAGES if not {'generated', '_build'} & {*p.parts}]


def blocks(page, language):
  """The code blocks of a page in one language."""
  return re.findall(
    rf'^```{language}\n(.*?)^```', page.read_text(), re.M | re.S
  )


def commands(page):
  """Words of each command line, continued lines joined."""
  for block in blocks(page, 'sh'):
    for line in block.replace('\\\n', ' ').splitlines():
      words = shlex.split(line, comments=True)
      if 'python' in ' '.join(words[:1]) and words[1:2] == ['-m']:
        yield words


@pytest.mark.parametrize('page', PAGES, ids=lambda p: p.stem)
def test_python_is_python(page):
  """Every block parses."""
  for block in blocks(page, 'python'):
    ast.parse(block)


def files_of(page, folder):
  """The blocks that begin with `# NAME.py`, written into a folder."""
  found = {}
  for block in blocks(page, 'python'):
    if match := re.match(r'# (\w+\.py)\n', block):
      found[match[1]] = folder / match[1]
      found[match[1]].write_text(block)
  return found


# Packages of extras that files of pages import.
OPTIONAL = ('mcp', 'verifiers')
NAMED = [
  page for page in PAGES if re.search(r'^# \w+\.py$', page.read_text(), re.M)
]


@pytest.mark.parametrize('page', NAMED, ids=lambda p: p.stem)
def test_files_of_pages_can_be_imported(
  page, tmp_path, user_modules, monkeypatch
):
  """Each block that is a file runs as the module of a user."""
  monkeypatch.chdir(tmp_path)
  for path in files_of(page, tmp_path).values():
    needs = [name for name in OPTIONAL if name in path.read_text()]
    if all(map(importlib.util.find_spec, needs)):
      user_modules.load(str(path))


def test_pieces_of_the_guide_pass_every_check(tmp_path, user_modules):
  """The command checks each of them, and their method."""
  path = files_of(ROOT / 'docs/guides/own_method.md', tmp_path)['my_pieces.py']
  user_modules.load(str(path))
  subjects = check_piece.subjects(str(path), [])
  assert [one.title for one in subjects] == [
    'AboveMean, role credit',
    'UncertainTokens, role weight',
    'QuadraticRatio, role policy',
    'get_method()',
  ]
  for one in subjects:
    assert [row for row in table.rows(one) if row.failure] == []


def test_the_guide_has_every_field_and_statistic():
  """Its tables have those of Trajectories and the names for `needs`."""
  text = (ROOT / 'docs/guides/own_method.md').read_text()
  rows = [line for line in text.split('\n') if line.startswith('| `')]
  named = {x for row in rows for x in re.findall(r'`(\w+)`', row.split('|')[1])}
  fields = {field.name for field in dataclasses.fields(Trajectories)}
  assert named == fields | statistics.CORE


def test_commands_name_programs_and_fields():
  """Programs, configurations, methods and the fields that --set names."""
  count = 0
  for page in PAGES:
    for words in commands(page):
      module = words[2]
      assert (ROOT / f'{module.replace(".", "/")}.py').exists(), words
      given = [w.split('=', 1) for w in words[3:] if w.startswith('--')]
      value = dict(x for x in given if len(x) == 2)
      for name in value.get('--method', '').split(','):
        if name and not name.endswith('.py'):
          configuration.load_method(name)
      if '--config' in value and value['--config'] not in YOURS:
        assert (ROOT / value['--config']).exists(), words
      count += 1
  assert count >= 10


def test_files_that_pages_name_exist():
  """`rl_jax/...py` in running text."""
  for page in PAGES:
    for path in re.findall(
      r'`((?:rl_jax|configs|tests)/[\w/]+\.py)`', page.read_text()
    ):
      assert (ROOT / path).exists(), f'{page.name}: {path}'


# Pages that follow one thing through the code.
WALKS = [
  ROOT / f'docs/concepts/{name}.md'
  for name in ('iteration', 'episode', 'preference_pair')
]


@pytest.mark.parametrize('page', WALKS, ids=lambda p: p.stem)
def test_functions_are_where_the_page_says(page):
  """`file.py`, `name`: the file defines the name; eight steps at least."""
  text = re.sub(r'\s+', ' ', page.read_text())
  pairs = re.findall(r'`(rl_jax/[\w/]+\.py)`, `([\w.]+)`', text)
  steps = re.findall(r' \d\. `rl_jax/[\w/]+\.py`, `[\w.]+`', text)
  assert len(pairs) >= len(steps) >= 8
  for path, names in pairs:
    source = (ROOT / path).read_text()
    for name in names.split('.'):
      assert re.search(rf'(def|class) {name}\b', source), f'{path}: {name}'


@pytest.mark.parametrize('page', WALKS, ids=lambda p: p.stem)
def test_quoted_lines_are_in_the_files_of_the_page(page):
  """Each quoted block of text is in a file that the page names."""
  text = page.read_text()
  paths = set(re.findall(r'`(rl_jax/[\w/]+\.py)`', text))
  sources = [(ROOT / path).read_text() for path in paths]
  lines = {x.strip() for source in sources for x in source.splitlines()}
  for block in re.findall(r'^ *```text\n(.*?)^ *```', text, re.M | re.S):
    assert {line.strip() for line in block.splitlines()} <= lines, block
