"""README is true: its tree, links, code and commands are those of the code.

`make readme` (this file as a program) writes the tree anew.
"""

import ast
import importlib
import pathlib
import re
import runpy
import shlex

from experiments.flags import configuration
from rl_jax import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = '<!-- tree: begin -->', '<!-- tree: end -->'
README = (ROOT / 'README.md').read_text()


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
  assert with_tree(README) == README, 'the tree is old: run make readme'


def test_links_exist():
  """Files that README links to are there."""
  links = re.findall(r'\]\(([^)#]+)\)', README)
  assert links
  missing = [link for link in links if not (ROOT / link).exists()]
  assert not missing


def test_method_of_readme_is_grpo():
  """The value shown is the one that --method=grpo names."""
  (source,) = re.findall(r'```python\n(Method.*?)```', README, re.DOTALL)
  grpo = importlib.import_module('configs.methods.grpo')
  assert eval(source, vars(grpo)) == grpo.get_method()


def test_readme_is_short():
  """Lines of text, without the tree and code; what has a page is linked."""
  before, rest = README.split(BEGIN)
  text = before + rest.split(END)[1]
  text = re.sub(r'^```.*?^```\n', '', text, flags=re.DOTALL | re.MULTILINE)
  assert text.count('\n') <= 200


def test_profile_is_that_of_the_worlds():
  """The table of ten methods is the one that a command has generated."""
  page = (ROOT / 'experiments/papers/worlds/README.md').read_text()
  page = page.split('<!-- table profile: begin -->')[1]
  page = page.split('<!-- table profile: end -->')[0]
  rows = [
    [cell.strip() or '.' for cell in line.strip('|').split('|')]
    for line in page.strip().splitlines()
  ]
  block = README.split('```text\nmethod')[1].split('```')[0]
  assert [rows[0], *rows[2:]] == [
    line.split() for line in f'method{block}'.strip().splitlines()
  ]


def test_script_learns(capsys):
  """The script without the loop runs, and its reward rises."""
  runpy.run_path(str(ROOT / 'experiments/pieces_without_loop.py'))
  rewards = re.findall(r'reward ([\d.]+)', capsys.readouterr().out)
  assert len(rewards) == 4
  assert float(rewards[-1]) > 0.8 > float(rewards[0])


def test_every_command_names_a_binary():
  """`python -m experiments.NAME` in README is a module."""
  names = set(re.findall(r'experiments\.(\w+(?:\.\w+)*)', README))
  assert {'train', 'evaluate', 'list_methods', 'sft'} <= names
  for name in names:
    path = ROOT / 'experiments' / (name.replace('.', '/') + '.py')
    assert path.exists(), name


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


def test_settings_of_the_table_are_fields():
  """Of the configuration; those that --allow_change names, too."""
  rows = re.findall(
    r'^\| .*`(--(?:set|allow_change)=.*)`', README, re.MULTILINE
  )
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
  (ROOT / 'README.md').write_text(with_tree(README))
