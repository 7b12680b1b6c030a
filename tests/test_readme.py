"""README and the pages that it links to are true, as the code is.

`make readme` (this file as a program) writes the tree of docs/layout.md again.
"""

import ast
import pathlib
import re
import runpy
import shlex

from experiments.flags import configuration
import rl_jax
from rl_jax import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = '<!-- tree: begin -->', '<!-- tree: end -->'
README = (ROOT / 'README.md').read_text()
PAGES = [
  path
  for path in sorted((ROOT / 'docs').rglob('*.md'))
  if not {'generated', '_build'} & {*path.parts}
]
LAYOUT = ROOT / 'docs/layout.md'
START = (ROOT / 'docs/start.md').read_text()


def first_line(path):
  """The first line of the docstring of a module."""
  return ast.get_docstring(ast.parse(path.read_text())).split('\n')[0]


def tree():
  """The folders of rl_jax, each with the first line of its docstring."""
  library = ROOT / 'rl_jax'
  lines = [('rl_jax/', first_line(library / '__init__.py'))]
  for path in sorted(library.glob('*.py')):
    if path.name != '__init__.py':
      lines.append((f'  {path.name}', first_line(path)))
  for face in sorted(library.rglob('*/__init__.py')):
    depth = len(face.parent.relative_to(library).parts)
    lines.append((f'{"  " * depth}{face.parent.name}/', first_line(face)))
  return '\n'.join(f'    {name:<20} {line}' for name, line in lines)


def with_tree(text):
  """The text with a fresh tree between its two markers."""
  before, rest = text.split(BEGIN)
  return f'{before}{BEGIN}\n{tree()}\n{END}{rest.split(END)[1]}'


def test_tree_is_of_docstrings():
  """`make readme` would change nothing."""
  text = LAYOUT.read_text()
  assert with_tree(text) == text, 'the tree is old: run make readme'


def test_links_exist():
  """Files that README links to are there."""
  links = re.findall(r'\]\(((?!https:)[^)#]+)\)', README)
  assert len(links) > 10
  missing = [link for link in links if not (ROOT / link).exists()]
  assert not missing


def test_ten_lines_of_readme_train_grpo(monkeypatch):
  """The method shown is the one that --method=grpo names, and it is trained."""
  (source,) = re.findall(r'```python\n(.*?)```', README, re.DOTALL)
  calls = []
  monkeypatch.setattr(rl_jax, 'train', lambda *args: calls.append(args))
  exec(source, {})
  ((config, workdir),) = calls
  assert config.method == configuration.load_method('grpo')
  config_lib.validate(config)
  assert workdir == 'runs/bandit'


def test_method_of_the_guide_is_grpo():
  """A file of this text is what --method=grpo names."""
  text = (ROOT / 'docs/guides/own_method.md').read_text()
  (source,) = re.findall(r'```python\n(from rl_jax.*?)```', text, re.DOTALL)
  names = {}
  exec(source, names)
  assert names['get_method']() == configuration.load_method('grpo')


def test_readme_is_short():
  """Everything else has a page of the documentation, which is linked."""
  assert README.count('\n') <= 120


def test_profile_is_that_of_the_worlds():
  """The table of ten methods is the one that a command has generated."""
  page = (ROOT / 'experiments/papers/worlds/README.md').read_text()
  page = page.split('<!-- table profile: begin -->')[1]
  page = page.split('<!-- table profile: end -->')[0]
  rows = [
    [cell.strip() or '.' for cell in line.strip('|').split('|')]
    for line in page.strip().splitlines()
  ]
  results = (ROOT / 'docs/results.md').read_text()
  block = results.split('```text\nmethod')[1].split('```')[0]
  assert [rows[0], *rows[2:]] == [
    line.split() for line in f'method{block}'.strip().splitlines()
  ]


def test_script_learns(capsys):
  """The script without the loop runs, and its reward rises."""
  runpy.run_path(str(ROOT / 'experiments/tools/pieces_without_loop.py'))
  rewards = re.findall(r'reward ([\d.]+)', capsys.readouterr().out)
  assert len(rewards) == 4
  assert float(rewards[-1]) > 0.8 > float(rewards[0])


def test_every_command_names_a_binary():
  """`python -m experiments.NAME` in README and docs is a module."""
  text = README + ''.join(page.read_text() for page in PAGES)
  names = set(re.findall(r'experiments\.(\w+(?:\.\w+)*)', text))
  assert {'train', 'evaluate', 'list_methods', 'sft'} <= names
  for name in names:
    path = ROOT / 'experiments' / (name.replace('.', '/') + '.py')
    assert path.exists(), name


def test_recipes_compose():
  """Each `--method=... --add/--set=...` line of the start builds and fits."""
  recipes = re.findall(r'^(--method=.*)$', START, re.MULTILINE)
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


def test_settings_of_the_table_are_fields():
  """The settings are fields, also those that --allow_change names."""
  rows = re.findall(r'^\| .*`(--(?:set|allow_change)=.*)`', START, re.MULTILINE)
  assert len(rows) >= 6
  base = configuration.build('bandit')
  for row in rows:
    words = [word.split('=', 1) for word in shlex.split(row)]
    sets = [value for flag, value in words if flag == '--set']
    assert not sets or configuration.changed(base, sets) != base, row
    for flag, path in words:
      if flag == '--allow_change':
        assert configuration.changed(base, [f'{path}=0.5']) != base


if __name__ == '__main__':
  LAYOUT.write_text(with_tree(LAYOUT.read_text()))
