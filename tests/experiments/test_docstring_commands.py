"""Every documented command parses; every configuration has one."""

import ast
import functools
import importlib
import pathlib
import re
import shlex

import pytest

from experiments.flags import configuration
from experiments.papers import recipe as recipe_lib
from experiments.sweeps import grid
from experiments.sweeps import runs as sweep_runs
from rl_jax import config as config_lib

METHODS = configuration.names('configs.methods')
PAPERS = sweep_runs.papers()
CONFIGS = configuration.names('configs')
DOCUMENTS = (
  'README.md',
  'docs/start.md',
  'docs/performance.md',
  'docs/results.md',
  *(f'docs/guides/{name}.md' for name in ('own_reward', 'own_method')),
  *(f'docs/guides/{name}.md' for name in ('own_data', 'environments')),
  *(f'docs/guides/{name}.md' for name in ('preferences', 'comparing')),
  'docs/guides/accelerators.md',
  *(f'experiments/papers/{name}/README.md' for name in PAPERS),
)
FOLDER = configuration.ROOT / 'experiments'
# Imported name -> module that defines flags for several binaries.
SHARED = {
  'configuration': 'flags.configuration',
  'evaluation_flags': 'flags.evaluation',
  'excerpts': 'sweeps.excerpts',
  'process_flags': 'flags.processes',
}
# Arguments for the reader to replace.
PLACEHOLDERS = (
  '--paper=NAME',
  '--config=configs/NAME.py',
  '--config=my_config.py',
  '--config=guess.py',
  '--method=my_pieces.py',
  '--config=runs/my/experiment.json',
)
# Every text in which a module or file of experiments may be named.
SOURCES = [
  path
  for pattern in ('*.py', '*.md', '*.sh', '*.yaml', 'Makefile')
  for path in sorted(configuration.ROOT.rglob(pattern))
  if not {'.venv', 'runs'} & set(path.relative_to(configuration.ROOT).parts)
]
# Method -> what the refusal of its command names.
REFUSED = {'duration_ppo': 'DurationWeight'}
# Words outside quotes, or quoted text, after each flag; lines that continue a
# command are indented.
COMMAND = re.compile(
  r"""python\ -m\ experiments\.(\w+(?:\.\w+)*)
  ((?:(?:[ ]+|[ ]*\\?\n[ ]+)--(?:"[^"]*"|'[^']*'|[^\s"'`])+)*)""",
  re.VERBOSE,
)

# What the docstring of a configuration must have -> an example.
CONTRACT = {
  r'^Cost\b.*: ': 'Cost: about 10 seconds on 2 CPU cores.',
  r'\b[Ee]xpected\b.*:\s': 'Expected: reward/mean 0.75 after 60 iterations.',
}


def commands(text: str) -> list[tuple[str, list[str]]]:
  """(binary, arguments) of every command in a text."""
  return [
    (name, shlex.split(arguments.replace('\\\n', ' ')))
    for name, arguments in COMMAND.findall(text)
  ]


def source_of(binary: str) -> pathlib.Path:
  """The file of experiments.BINARY."""
  return FOLDER / (binary.replace('.', '/') + '.py')


@functools.cache
def flags_of(binary: str) -> set[str]:
  """Names of the flags that a binary defines, or asks a module to define.

  Read from the source: two binaries cannot define their flags in one process.
  """
  names = {'helpfull', 'import'}  # `configuration.run` defines the second
  tree = ast.parse(source_of(binary).read_text())
  nodes = list(ast.walk(tree))
  defining = {  # names for `functools.partial(flags.DEFINE_...)`
    ast.unparse(node.targets[0])
    for node in nodes
    if isinstance(node, ast.Assign)
    and ast.unparse(node.value).startswith('functools.partial(flags.DEFINE_')
  }
  for node in nodes:
    if isinstance(node, ast.ImportFrom):
      # Tables of a paper share the flags of the one that they import.
      folder, _, beside = (node.module or '').partition('.papers.')
      if folder == 'experiments' and beside:
        modules = [f'papers.{beside}.{alias.name}' for alias in node.names]
        found = [one for one in modules if source_of(one).exists()]
        names = names.union(*map(flags_of, found))
    if not isinstance(node, ast.Call):
      continue
    called = ast.unparse(node.func)
    if called.startswith('flags.DEFINE_') or called in defining:
      names.add(ast.literal_eval(node.args[0]))
    elif called == 'parser.add_argument':  # of peers, which may lack absl
      first = node.args[0]
      if isinstance(first, ast.Constant):
        names.add(first.value.removeprefix('--'))
    elif called == 'places.define_workdirs':
      names |= {'workdir', 'workdirs'}
    elif called.endswith('.define_flags'):
      names |= flags_of(SHARED[called.split('.')[0]])
  return names


def check(binary: str, arguments: list[str]) -> None:
  """The flags exist, and the configuration that they describe is valid."""
  known = flags_of(binary)
  found = [re.fullmatch(r'--(\w+)(?:=(.*))?', text) for text in arguments]
  assert all(found), arguments
  unknown = {match[1] for match in found} - known
  assert not unknown, f'experiments.{binary} has no {unknown}'
  options = {match[1]: match[2] for match in found}

  def every(name):
    return [match[2] for match in found if match[1] == name]

  if any(text in arguments for text in PLACEHOLDERS):
    return
  if 'paper' in options:
    of_recipes = ('data', 'plan', 'evaluate', 'papers.plans')
    recipe = binary in of_recipes or 'scale' in options
    assert options['paper'] in (recipe_lib.names() if recipe else PAPERS)
  if binary == 'sweep' and 'config' in options:
    method, seeds = options.get('method', 'grpo'), options.get('seeds')
    settings = grid.settings(
      options['config'],
      method,
      every('set'),
      every('add'),
      seeds=seeds and int(seeds),
    )
    for run in sweep_runs.runs(settings):
      config_lib.validate(run.config)
  elif binary == 'train' or str(options.get('config')).startswith('configs/'):
    config = configuration.build(
      options['config'],
      options.get('method', 'grpo'),
      every('set'),
      every('add'),
    )
    config_lib.validate(config)


def described(file: str) -> str:
  """The docstring of a file of this repository."""
  return ast.get_docstring(ast.parse((configuration.ROOT / file).read_text()))


def test_a_wrong_command_is_found():
  """A misspelt flag, method and field."""
  (good,) = commands(described('configs/worlds/bandit.py'))
  check(*good)
  for wrong in ('--metod=grpo', '--method=grp', '--set=rollout.groups=4'):
    with pytest.raises((AssertionError, ValueError)):
      check('train', [*good[1], wrong])


@pytest.mark.parametrize('name', CONFIGS)
def test_configurations_keep_the_contract(name):
  """A command with this file, its cost, and the expected result."""
  file = configuration.file_of('configs', name)
  text = described(file)
  found = commands(text)
  missing = [
    example
    for pattern, example in CONTRACT.items()
    if not re.search(pattern, text, re.MULTILINE)
  ]
  if not any(f'--config={file}' in args for _, args in found):
    missing.append(
      'Command: python -m experiments.train --method=grpo\n'
      f'  --config={file} --workdir=runs/{name}'
    )
  assert not missing, (
    f'the docstring of {file} lacks parts; for example\n\n' + '\n'.join(missing)
  )
  for command in found:
    check(*command)


@pytest.mark.parametrize('name', METHODS)
def test_commands_of_methods_parse(name):
  """The method fits the configuration that its docstring names."""
  found = commands(described(f'configs/methods/{name}.py'))
  assert found
  for command in found:
    if name in REFUSED:
      with pytest.raises(ValueError, match=REFUSED[name]):
        check(*command)
    else:
      check(*command)


@pytest.mark.parametrize('name', PAPERS)
def test_commands_of_papers_parse(name):
  """At least one runs this sweep."""
  text = importlib.import_module(f'experiments.papers.{name}.sweep').__doc__
  found = commands(text)
  assert any(f'--paper={name}' in args for _, args in found)
  for command in found:
    check(*command)


@pytest.mark.parametrize('path', DOCUMENTS)
def test_commands_of_documents_parse(path):
  """Commands with flags; a name without flags is only mentioned."""
  text = (FOLDER.parent / path).read_text()
  found = [command for command in commands(text) if command[1]]
  assert found
  for command in found:
    check(*command)


def test_commands_of_modules_parse():
  """Those in the docstrings of experiments, all of them."""
  count = 0
  for path in sorted(FOLDER.rglob('*.py')):
    text = ast.get_docstring(ast.parse(path.read_text()))
    for binary, arguments in commands(text):
      # torch_peer defines its flags in a loop.
      if binary not in ('NAME', 'benchmarks.torch_peer'):
        check(binary, arguments)
        count += 1
  assert count > 30


def test_modules_and_files_that_are_named_exist():
  """`-m experiments.NAME` and `experiments/NAME.py` in any text here."""
  module = re.compile(r'-m experiments\.(\w+(?:\.\w+)*)')
  file = re.compile(
    r'(?<![\w/])experiments/[\w/]+\.(?:py|sh|md|jsonl|png|yaml)\b'
  )
  named = {}
  for path in SOURCES:
    text = path.read_text()
    named |= {source_of(name): path for name in module.findall(text)}
    for name in file.findall(text):
      named[configuration.ROOT / name] = path
  missing = {
    str(name): str(path)
    for name, path in named.items()
    if 'NAME' not in str(name) and not name.exists()
  }
  assert len(named) > 30 and not missing
