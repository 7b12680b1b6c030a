"""The command `rl-jax`: the programs of experiments, by name.

rl-jax train --config=bandit --method=grpo --workdir=runs/bandit

It works in any folder, also in one that has packages called experiments or
configs; `python -m experiments.NAME` is the same where no such package is in
the working directory.
"""

import ast
import difflib
import os
import pathlib
import runpy
import sys

import rl_jax

FOLDER = pathlib.Path(__file__).resolve().parent
# Heading -> the commands below it on the help page.
GROUPS = {
  'Train': ('quickstart', 'train', 'sft', 'pipeline', 'sweep'),
  'Measure': ('evaluate', 'evaluate_reward'),
  'Look': ('report', 'plot', 'table', 'play', 'methods'),
  'Your own code': ('check-piece',),
  'Models and data': (
    *('import', 'export', 'data', 'rollout_rows'),
    'select_rows',
  ),
  'Hardware': ('plan', 'benchmark'),
}
# Command -> program, where the two differ.
SHORT = {
  'export': 'export_weights',
  'import': 'import_weights',
  'methods': 'list_methods',
}
_HELP = ('', 'help', '-h', '-help', '--help')


def programs() -> dict[str, str]:
  """Name -> first line of its docstring, of programs that serve no paper."""
  found = {}
  for path in sorted((*FOLDER.glob('*.py'), *FOLDER.glob('tools/*.py'))):
    text = path.read_text(encoding='utf-8')
    if "if __name__ == '__main__':" in text and path.stem != 'cli':
      docstring = ast.get_docstring(ast.parse(text)) or ''
      found[path.stem] = docstring.partition('\n')[0]
  return found


def page() -> str:
  """The page that --help prints."""
  known = programs()
  lines = [
    'usage: rl-jax COMMAND [--FLAG=VALUE ...]',
    '       rl-jax COMMAND --help',
    '',
    'On-policy reinforcement learning of language models in JAX, '
    f'version {rl_jax.__version__}.',
  ]
  shown = set()
  for heading, commands in GROUPS.items():
    lines += ['', f'{heading}:']
    for command in commands:
      name = SHORT.get(command, command.replace('-', '_'))
      shown.add(name)
      lines.append(f'  {command:<20} {known[name]}')
  lines += ['', 'Further programs:']
  lines += [
    f'  {name:<20} {text}' for name, text in known.items() if name not in shown
  ]
  return '\n'.join(lines) + '\n'


def program_of(command: str) -> str:
  """The module that a command names.

  Raises: ValueError naming the nearest command.
  """
  known = programs()
  name = command.replace('-', '_')
  name = SHORT.get(name, name)
  if name in known:
    tool = (FOLDER / 'tools' / f'{name}.py').is_file()
    return f'experiments.tools.{name}' if tool else f'experiments.{name}'
  path = FOLDER / (name.replace('.', os.sep) + '.py')
  if '.' in name and path.is_file():  # of a paper
    return f'experiments.{name}'
  near = difflib.get_close_matches(name, [*SHORT, *known], n=1, cutoff=0.4)
  hint = f' Did you mean {near[0]!r}?' if near else ''
  raise ValueError(f'unknown command: {command!r}.{hint} See rl-jax --help')


def write(text: str) -> None:
  """Prints a page; readers that stop early, such as `head`, are allowed."""
  try:
    sys.stdout.write(text)
    sys.stdout.flush()
  except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
  """Runs the program that the first argument names, with all others."""
  command, *arguments = sys.argv[1:] or ['']
  if command in _HELP:
    write(page())
    return
  if command == '--version':
    write(f'{rl_jax.__version__}\n')
    return
  try:
    module = program_of(command)
  except ValueError as error:
    print(f'error: {error}', file=sys.stderr)
    sys.exit(2)
  # Modules of the user that --import names; last, so that they hide nothing.
  if os.getcwd() not in sys.path:
    sys.path.append(os.getcwd())
  sys.argv = [f'rl-jax {command}', *arguments]
  runpy.run_module(module, run_name='__main__', alter_sys=True)


if __name__ == '__main__':
  main()
