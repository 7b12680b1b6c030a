"""Prints what --help of each program does, as JSON.

  python tests/experiments/help_pages.py MODULE ...

{module: [exit code, output, errors, exit code where nobody reads, errors]}.
JAX is imported once; every program runs in a fork, because two of them may
define flags of the same name. Exit code 3: it has compiled something.
"""

import json
import os
import runpy
import sys
import tempfile

import jax

# What most programs import.
from rl_jax.runs import loop  # noqa: F401

COMPILATION = '/jax/core/compile/backend_compile_duration'


def run(module: str) -> int:
  """The exit code of `python -m MODULE --help` in this process."""
  compiled = []

  def listen(event, seconds, **more):
    del seconds, more
    if event == COMPILATION:
      compiled.append(event)

  jax.monitoring.register_event_duration_secs_listener(listen)
  sys.argv = [module, '--help']
  try:
    runpy.run_module(module, run_name='__main__', alter_sys=True)
    code = 0
  except SystemExit as error:
    code = error.code or 0
  # As the interpreter does at its end.
  sys.stdout.flush()
  return 3 if compiled else code


def child(module: str, out: int, errors: int) -> None:
  """Runs a program with these descriptors and ends the process."""
  os.dup2(out, 1)
  os.dup2(errors, 2)
  code = 1
  try:
    code = run(module)
  except BaseException as error:
    print(repr(error), file=sys.stderr)
  sys.stderr.flush()
  os._exit(code)


def observed(module: str, read: bool) -> list:
  """[exit code, output, errors] of a fork; read: whether output is read."""
  with (
    tempfile.TemporaryFile('w+') as out,
    tempfile.TemporaryFile('w+') as errors,
  ):
    end, pipe = os.pipe()
    os.close(end)
    if (process := os.fork()) == 0:
      child(module, out.fileno() if read else pipe, errors.fileno())
    os.close(pipe)
    _, status = os.waitpid(process, 0)
    out.seek(0)
    errors.seek(0)
    return [os.waitstatus_to_exitcode(status), out.read(), errors.read()]


def main(modules: list[str]) -> None:
  """Writes the JSON."""
  pages = {}
  for module in modules:
    code, _, errors = observed(module, False)
    pages[module] = [*observed(module, True), code, errors]
  print(json.dumps(pages))


if __name__ == '__main__':
  main(sys.argv[1:])
