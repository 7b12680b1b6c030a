"""The files that make a method, and the outcomes of their mutants."""

import collections
import importlib
import json
import pathlib
import sys

import mutants

ROOT = pathlib.Path(__file__).parents[2]
# Mutants that say the same, or nearly: {file: {mutant: why}}.
EQUIVALENT = pathlib.Path(__file__).with_name('equivalent.json')


def files_of_methods() -> dict[str, list[str]]:
  """Method -> its configuration and the files of its pieces."""
  folder = ROOT / 'configs' / 'methods'
  found = {}
  for path in sorted(folder.glob('*.py')):
    if path.stem == '__init__':
      continue
    module = importlib.import_module(f'configs.methods.{path.stem}')
    method = module.get_method()
    pieces = [piece for _, piece in method.pieces()]
    pieces += [p for p in (method.rollout, method.selector) if p is not None]
    modules = {type(piece).__module__ for piece in pieces}
    files = {f'{name.replace(".", "/")}.py' for name in modules}
    found[path.stem] = [f'configs/methods/{path.name}', *sorted(files)]
  return found


def read(path: pathlib.Path) -> dict[tuple[str, str], dict]:
  """(file, mutant) -> verdict; the last one counts."""
  if not path.exists():
    return {}
  rows = map(json.loads, path.read_text().splitlines())
  return {(row['file'], row['name']): row for row in rows}


def reasons() -> dict[tuple[str, str], str]:
  """(file, mutant) -> why no test can kill it."""
  found = json.loads(EQUIVALENT.read_text())
  return {
    (file, name): why
    for file, names in found.items()
    for name, why in names.items()
  }


def report(files: dict[str, list[str]], path: pathlib.Path) -> int:
  """Prints the table and what survives; 1 if anything survives unexplained.

  Counts the mutants of today's source; 1 also if some were not tried.
  """
  found, by_file, known = read(path), {}, reasons()
  untried, gone = [], set(known)
  for file in sorted(set().union(*files.values())):
    source = (ROOT / file).read_text()
    keys = [(file, mutant.name) for mutant in mutants.mutants(source)]
    by_file[file] = [found[key] for key in keys if key in found]
    gone -= set(keys)
    if left := len(keys) - len(by_file[file]):
      untried.append(f'{file} ({left})')
  print('| method | mutants | killed | equivalent | survived |')
  print('|---|---|---|---|---|')
  for name, used in files.items():
    print(_line(name, [r for file in used for r in by_file[file]], known))
  every = [row for rows in by_file.values() for row in rows]
  print(_line('all files, once each', every, known))
  if untried:
    print('\nnot tried yet: ' + ', '.join(untried))
  open_ = [row for row in every if _kind(row, known) == 'survived']
  for row in open_:
    print(f'survived: {row["file"]}:{row["line"]}: {row["name"]}')
  stale = gone | {k for k in known if found.get(k, {}).get('killer')}
  for file, name in sorted(stale):
    print(f'equivalent.json names what was killed or is gone: {file}: {name}')
  return int(bool(open_ or stale or untried))


def _kind(row, known):
  if row['killer']:
    return 'killed'
  same = (row['file'], row['name']) in known
  return 'equivalent' if same else 'survived'


def _line(name, rows, known):
  count = collections.Counter(_kind(row, known) for row in rows)
  cells = [name, len(rows), *map(count.get, ('killed', 'equivalent'))]
  return f'| {" | ".join(str(x or 0) for x in cells)} | {count["survived"]} |'


if __name__ == '__main__':
  sys.exit('see run.py')
