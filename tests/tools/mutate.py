"""Changes one constant or operator at a time and asks the goldens.

  python tests/tools/mutate.py --out=DIR [--seconds=140] [--shard=i/n]
    [--most=8]
  python tests/tools/mutate.py --out=DIR --report

A piece is judged by its own test file, and if that passes by the goldens of the
methods that use it; a configuration by the goldens and the constants that its
docstring lists.
Verdicts are appended to DIR/verdicts.jsonl; what was killed there is not tried
again, so that a run of limited seconds continues. --report prints a table of
all methods and fails where a mutant survives that `equivalent.json` does not
explain. Mutants run in one process, which keeps jax's compiled operations.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).parent)]
os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import mutants  # noqa: E402
import pytest  # noqa: E402
import verdicts  # noqa: E402

LIMIT = 60  # CPU seconds for the tests of one mutant
GOLDENS = 'tests/methods/test_policy_goldens.py'
DEFAULTS = 'tests/methods/test_docstrings.py'


def main():
  """Runs or reports."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--out', required=True)
  parser.add_argument('--seconds', type=float, default=float('inf'))
  parser.add_argument('--shard', default='0/1')
  parser.add_argument('--most', type=int, default=10**6, help='of a file')
  parser.add_argument('--report', action='store_true')
  options = parser.parse_args()
  os.chdir(ROOT)
  path = pathlib.Path(options.out) / 'verdicts.jsonl'
  path.parent.mkdir(parents=True, exist_ok=True)
  files = verdicts.files_of_methods()
  if options.report:
    sys.exit(verdicts.report(files, path))
  i, n = map(int, options.shard.split('/'))
  end = time.monotonic() + options.seconds
  # Pieces first; the tests of rollouts run a model.
  late = ('rl_jax/rollouts', 'configs')

  def order(file):
    return (file.startswith(late), file)

  every = sorted(set().union(*files.values()), key=order)
  for file in every[i::n]:
    methods = [name for name, used in files.items() if file in used]
    if not judge(file, methods, path, end, options.most):
      print('out of time: run it again to continue')
      return
  print('all done')


def judge(file, methods, path, end, most) -> bool:
  """Appends the verdicts of a file; False: out of time."""
  found, same = verdicts.read(path), verdicts.reasons()
  done = {k for k, row in found.items() if row['killer'] or k in same}
  every = list(mutants.mutants((ROOT / file).read_text()))
  count = min(most, len(every))  # spread evenly over the file
  chosen = [every[i * len(every) // count] for i in range(count)]
  waiting = [m for m in chosen if (file, m.name) not in done]
  stages = stages_of(file, methods)
  module = importlib.import_module(file.removesuffix('.py').replace('/', '.'))
  for i, mutant in enumerate(waiting):
    if time.monotonic() > end:
      return False
    if i == 0:
      for stage in stages:
        if killer := failing(stage):
          raise ValueError(f'{file}: {killer} fails without a mutant')
    started, killer = time.monotonic(), None
    with installed(module, mutant.code(str(ROOT / file))) as problem:
      for stage in stages:
        killer = killer or problem or failing(stage)
    row = {
      'file': file,
      'line': mutant.line,
      'name': mutant.name,
      'killer': killer,
      'seconds': round(time.monotonic() - started, 2),
    }
    with open(path, 'a') as out:
      out.write(json.dumps(row) + '\n')
  return True


def stages_of(file, methods) -> list[list[str]]:
  """Arguments of pytest: what judges the file, the cheapest first."""
  text = (ROOT / GOLDENS).read_text()
  named = [name for name in methods if f"'{name}'" in text]
  stages = [[GOLDENS, '-k', ' or '.join(named)]] if named else []
  stages.append([DEFAULTS, '-k', ' or '.join(f'[{m}]' for m in methods)])
  if file.startswith('configs'):
    return stages
  parts = pathlib.Path(file).parts[1:]
  own = pathlib.Path('tests', *parts[:-1], f'test_{parts[-1]}')
  return [[str(own)], *stages]


class Judge:
  """Remembers the first test that failed."""

  def __init__(self):
    self.killer = None

  def pytest_runtest_logreport(self, report):
    """Set up, call or tear down."""
    if report.failed and self.killer is None:
      self.killer = report.nodeid

  def pytest_collectreport(self, report):
    """A module that cannot be imported."""
    if report.failed and self.killer is None:
      self.killer = f'import of {report.nodeid}'


def failing(arguments) -> str | None:
  """The first test that fails, in this process with fresh test modules."""
  for name in [n for n in sys.modules if n.startswith('tests.')]:
    del sys.modules[name]
  found = Judge()
  flags = ['-x', '-q', '-m', 'not slow and not devices']
  # unraisableexception collects garbage five times at the end of a session.
  for plugin in ('cacheprovider', 'xdist', 'unraisableexception'):
    flags += ['-p', f'no:{plugin}']
  flags += ['--tb=no']
  quiet = io.StringIO()
  with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
      pytest.main([*flags, *arguments], plugins=[found])
    except TimeoutError:
      found.killer = found.killer or 'time limit'
    finally:
      signal.setitimer(signal.ITIMER_PROF, 0)
  return found.killer


def _out_of_time(*_):
  raise TimeoutError('a mutant took too long')


@contextlib.contextmanager
def installed(module, code):
  """Runs with the code in place of the module's; yields why it cannot be.

  Its classes and functions are replaced wherever a module has imported them.
  """
  before = dict(vars(module))
  problem, patches = None, []
  try:
    exec(code, vars(module))
  except Exception as error:
    problem = f'import: {error!r}'
  new = {
    id(old): vars(module)[name]
    for name, old in before.items()
    if getattr(old, '__module__', None) == module.__name__
  }
  for other in list(sys.modules.values()):
    if getattr(other, '__name__', '').split('.')[0] in ('rl_jax', 'configs'):
      for name, value in list(vars(other).items()):
        if id(value) in new and other is not module:
          patches.append((other, name, value))
          setattr(other, name, new[id(value)])
  try:
    yield problem
  finally:
    for other, name, value in patches:
      setattr(other, name, value)
    vars(module).clear()
    vars(module).update(before)


if __name__ == '__main__':
  main()
