"""Arguments are written one by one: the formatter decides about lines."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ('rl_jax', 'experiments', 'configs', 'tests')


def unpacked(source: str) -> list[int]:
  """Lines of calls f(*(a, b)) and f(**{'a': b}), which mean f(a, b), f(a=b)."""
  lines = []
  for node in ast.walk(ast.parse(source)):
    if not isinstance(node, ast.Call):
      continue
    for one in node.args:
      if isinstance(one, ast.Starred) and isinstance(
        one.value, (ast.Tuple, ast.List)
      ):
        lines.append(node.lineno)
    for keyword in node.keywords:
      if keyword.arg is None and isinstance(keyword.value, ast.Dict):
        keys = keyword.value.keys
        if all(
          isinstance(key, ast.Constant) and str(key.value).isidentifier()
          for key in keys
        ):
          lines.append(node.lineno)
  return lines


def test_what_is_found():
  assert unpacked('f(*(a, b), c)') == [1]
  assert unpacked("f(**{'a': b})") == [1]
  assert not unpacked("f(*a, *g(b), **{name: c}, **d, **{'e.f': 1})")


def test_no_call_unpacks_what_is_written_in_it():
  found = [
    f'{path.relative_to(ROOT)}:{line}'
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob('*.py'))
    for line in unpacked(path.read_text())
  ]
  assert not found, 'write the arguments themselves:\n' + '\n'.join(found)
