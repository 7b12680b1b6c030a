"""Rooms of rl_jax import only those that a table allows."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'rl_jax'

# A room, and what it may import besides itself. `pieces/...` names a part.
_BASE = {'types', 'checks', 'overrides', 'method', 'user_modules', 'optional'}
_LOW = _BASE | {'randomness', 'serialization', 'runtime', 'verification'}
_SAMPLED = {
  f'pieces/{x}' for x in ('logits', 'ops', 'row_inputs', 'piece', 'roles')
}
# What rooms read that make rows or judge them.
_ROWS = _LOW | {'models'} | _SAMPLED
_ROUNDS = {'rollouts/responses', 'rollouts/rounds'}
ALLOWED = {
  'types': set(),
  'checks': set(),
  'former_names': set(),
  'user_modules': {'former_names'},
  'optional': set(),
  'overrides': {'former_names', 'user_modules'},
  # The base classes of its slots, and the rule of its reference.
  'method': {'pieces/piece', 'pieces/policies', 'pieces/roles'},
  'randomness': {'types'},
  'serialization': {'overrides', 'user_modules'},
  'runtime': {'types', 'checks'},
  'verification': {'checks', 'user_modules'},
  'tasks': {'checks', 'verification/sandbox', 'user_modules'},
  'pieces': {'types', 'checks', 'randomness'},
  'models': {'types', 'checks', 'serialization', 'runtime', 'optional'},
  'decoding': _ROWS | {'episodes/turns'},  # the limits of a turn
  'judging': _ROWS | {'tasks', 'decoding', *_ROUNDS},
  'rollouts': _ROWS
  | {'tasks', 'decoding', 'judging', 'data/completions'}
  | {'episodes/turns', 'episodes/resumed'},
  'episodes': _ROWS
  | {'tasks', 'decoding', 'judging', *_ROUNDS}
  | {'rollouts/prompts'},
  'data': _ROWS | {'tasks', 'decoding', 'judging', 'rollouts', 'episodes'},
  'worlds': {'tasks', 'verification', 'checks', 'user_modules'},
  'learning': {
    *('types', 'checks', 'randomness', 'method', 'runtime', 'pieces', 'models'),
    'overrides',
  },
  'control': {
    *('types', 'checks', 'randomness', 'method', 'runtime', 'pieces', 'models'),
    *('learning', 'optional'),
  },
  'records': {'types', 'checks', 'runtime', 'optional', 'rollouts/responses'},
}
# The rooms whose sections a configuration holds.
ALLOWED['config'] = {
  *('checks', 'method', 'runtime', 'models', 'verification', 'rollouts'),
  *('learning', 'records', 'tasks', 'serialization'),
}
# Worlds are of configurations, papers and tests; control has separate
# programs.
_LIBRARY = {*ALLOWED} - {'worlds', 'control'}
ALLOWED['measures'] = _LIBRARY | {
  f'runs/{x}' for x in ('assembly', 'directory', 'policies', 'policy', 'stages')
}
ALLOWED['runs'] = _LIBRARY | {'measures'}
ALLOWED['planning'] = _LIBRARY | {'runs', 'measures'}
ALLOWED['api'] = _LIBRARY | {'runs', 'planning'}
EXCEPTIONS = {
  # Verifiers of tasks on the device are arrays in, arrays out.
  ('tasks/device_verifiers', 'types'),
  # The automaton of texts over tokens, NumPy only.
  ('tasks/text_spans', 'decoding/stop'),
  # What a configuration may not hold, of all rooms that make rows.
  ('rollouts/checks', 'data/recorded_checks'),
  ('rollouts/checks', 'episodes/partners'),
  ('judging/learned_checks', 'rollouts/wrappers/greedy_response'),
  # A server that outlives the episodes of its worker.
  ('tasks/environments/mcp_tools', 'verification/child_processes'),
  ('rollouts/wrappers/opponent', 'pieces/policies'),  # a rule, as of a method
}
PART_OF_PIECES = (
  *(
    'pieces/ops/',
    'pieces/calls',
    'pieces/row_inputs',
    'pieces/row_keys',
    'pieces/piece',
    'pieces/roles',
    'pieces/policies',
  ),
  *('pieces/logits/transforms', 'pieces/statistics/'),
)


def module_name(path: pathlib.Path) -> str:
  """'pieces/ops/groups' of rl_jax/pieces/ops/groups.py; 'tasks' of a face."""
  name = str(path.relative_to(PACKAGE).with_suffix(''))
  return name.removesuffix('__init__').rstrip('/')


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob('*.py'))}


def imported(path: pathlib.Path) -> list[tuple[str, int]]:
  """(module of rl_jax, line) of every import of the file, in functions too."""
  found = []
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    else:
      continue
    for name in names:
      first, *rest = name.split('.')
      if first != 'rl_jax':
        continue
      while '/'.join(rest) not in MODULES:
        rest.pop()
      found.append(('/'.join(rest), node.lineno))
  return found


def is_allowed(module: str, target: str) -> bool:
  room = module.split('/')[0]
  if target.split('/')[0] == room or (module, target) in EXCEPTIONS:
    return True
  allowed = ALLOWED[room]
  parts = target.split('/')
  return any('/'.join(parts[: i + 1]) in allowed for i in range(len(parts)))


def test_rooms_are_these():
  """The modules and folders of rl_jax are those of the table."""
  files = {p.stem for p in PACKAGE.glob('*.py')} - {'__init__'}
  folders = {p.name for p in PACKAGE.iterdir() if (p / '__init__.py').exists()}
  assert files | folders == set(ALLOWED)


@pytest.mark.parametrize('room', sorted(ALLOWED))
def test_rooms_import_what_they_may(room):
  wrong = {
    f'rl_jax/{module}.py:{line} imports {target}'
    for module, path in MODULES.items()
    if module.split('/')[0] == room
    for target, line in imported(path)
    if target and not is_allowed(module, target)
  }
  assert not wrong, '\n'.join(wrong)


def test_worlds_are_of_configurations_papers_and_tests():
  """Programs for users know no world; pipelines are of papers."""
  wrong = [
    f'{path.relative_to(ROOT)}:{line} imports {target}'
    for path in sorted((ROOT / 'experiments').rglob('*.py'))
    if path.relative_to(ROOT).parts[1] not in ('papers', 'pipelines')
    for target, line in imported(path)
    if target.split('/')[0] == 'worlds'
  ]
  assert not wrong, '\n'.join(wrong)


def test_a_piece_imports_no_other_piece():
  """Only the faces, and what all pieces share."""
  wrong = []
  for module, path in MODULES.items():
    folder, _, name = module.rpartition('/')
    if not folder.startswith('pieces/') or folder == 'pieces/ops':
      continue
    for target, line in imported(path):
      if target.startswith('pieces/') and not target.startswith(PART_OF_PIECES):
        wrong.append(f'rl_jax/{module}.py:{line} imports {target}')
  assert not wrong, '\n'.join(wrong)


def test_no_circle_of_files():
  """Imports inside functions count too; faces re-export and do not."""
  faces = {m for m, p in MODULES.items() if p.name == '__init__.py'}
  graph = {
    module: {t for t, _ in imported(path)} - faces - {module}
    for module, path in MODULES.items()
    if module not in faces
  }
  while graph:
    leaves = {m for m, targets in graph.items() if not targets & set(graph)}
    assert leaves, f'in a circle, or dependent on one: {sorted(graph)}'
    graph = {m: t for m, t in graph.items() if m not in leaves}
