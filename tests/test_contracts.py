"""Code that asks for a name that a class may lack is listed with its reason.

An optional member of an object of ours is a method or attribute with a default
on its base class (`Piece`, `Task`, `TaskTraits`, `Environment`, `Tokenizer`).
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
_ASKS = re.compile(r'\b(?:hasattr|getattr)\(')
# Lines by file: of objects of this library, and the reason.
OWN = {
  'rl_jax/__init__.py': (1, 'public names are imported when they are used'),
  'rl_jax/checks.py': (4, 'fields of any dataclass, by name'),
  'rl_jax/method.py': (1, 'slots of a method, by name'),
  'rl_jax/overrides.py': (2, 'fields of a configuration, by path'),
  'rl_jax/pieces/calls.py': (4, 'keys of contexts and trajectories, by name'),
  'rl_jax/planning/abstract_run.py': (1, 'scores that no program computes'),
  'rl_jax/runs/directory.py': (1, 'fields of a configuration, by path'),
  'rl_jax/runtime/mesh.py': (
    1,
    'specs of the models, which runtime imports not',
  ),
  'rl_jax/serialization.py': (1, 'fields of any dataclass, by name'),
}
# Of objects of Python, other libraries and users.
OTHER = {
  'rl_jax/overrides.py': (1, 'protocols of typing'),
  'rl_jax/pieces/piece.py': (1, 'a class of the former form, for its error'),
  'rl_jax/planning/memory_check.py': (1, 'sysconf of the system'),
  'rl_jax/records/checkpoints/leaves.py': (2, 'arrays of NumPy and JAX'),
  'rl_jax/runs/callbacks.py': (2, 'callbacks of users, and their modules'),
  'rl_jax/runtime/host_memory.py': (1, 'the C library'),
  'rl_jax/runtime/mesh.py': (1, 'devices of JAX'),
  'rl_jax/runtime/output.py': (3, 'streams of the process'),
  'rl_jax/runtime/platform.py': (1, 'devices of JAX'),
  'rl_jax/tasks/antiderivatives.py': (1, 'functions of mpmath'),
  'rl_jax/tasks/environments/aviary.py': (1, 'messages of Aviary'),
  'rl_jax/tasks/environments/gymnasium_text.py': (1, 'tables of Gymnasium'),
  'rl_jax/tasks/environments/mcp_tools.py': (1, 'content of MCP'),
  'rl_jax/tasks/environments/mini_grid.py': (1, 'missions of MiniGrid'),
  'rl_jax/tasks/environments/tool_functions.py': (2, 'tools of users'),
  'rl_jax/tasks/reward_forms.py': (1, 'results of functions of users'),
  'rl_jax/tasks/rows.py': (1, 'cells of tables'),
  'rl_jax/tasks/sources.py': (1, 'cells of tables'),
  'rl_jax/user_modules.py': (4, 'modules of users'),
  'rl_jax/verification/numbers.py': (1, 'results of functions of users'),
  'rl_jax/verification/processes.py': (1, 'the script that runs'),
  'rl_jax/verification/sandbox/runner.py': (1, 'limits of the system'),
}


def test_only_these_lines_ask_for_a_name():
  """A new one needs a base class with a default, or a reason here."""
  found = {}
  for path in sorted((ROOT / 'rl_jax').rglob('*.py')):
    lines = path.read_text().splitlines()
    if count := sum(bool(_ASKS.search(line)) for line in lines):
      found[str(path.relative_to(ROOT))] = count
  known = dict.fromkeys((*OWN, *OTHER), 0)
  for lines in (OWN, OTHER):
    for name, (count, _) in lines.items():
      known[name] += count
  assert found == known


def test_few_lines_ask():
  own = sum(count for count, _ in OWN.values())
  other = sum(count for count, _ in OTHER.values())
  assert own < 30 and own + other <= 60
