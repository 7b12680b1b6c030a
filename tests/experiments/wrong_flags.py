"""Runs binaries of experiments with many command lines.

    python tests/experiments/wrong_flags.py

Reads lines of JSON, [folder, {name: argument lists}], and answers each with
{name: a list of [exit code, standard error, what was raised or null]}, run in
that folder. Every binary is a fork of a process that has imported the library,
which takes longer than most calls, but has started no backend of JAX. A call
has SECONDS.
"""

import contextlib
import io
import json
import os
import runpy
import signal
import sys

from absl import app, flags, logging

SECONDS = 30


class Late(BaseException):
  """No exception that a program may catch."""


def entry(name):
  """(function, parser of flags) that the binary gives to absl."""
  found = []
  app.run = lambda main, flags_parser: found.extend((main, flags_parser))
  runpy.run_module(f'experiments.{name}', run_name='__main__')
  return found


def call(main, parser, arguments):
  """[exit code, standard error or after success output, what was raised]."""
  for flag in list(flags.FLAGS):
    flags.FLAGS[flag].unparse()
  text, output = io.StringIO(), io.StringIO()
  code, raised = 0, None
  signal.alarm(SECONDS)
  try:
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(output):
      main(parser([sys.argv[0], *arguments]))
  except SystemExit as end:
    code = end.code
  except BaseException as error:
    raised = f'{type(error).__name__}: {error}'
  finally:
    signal.alarm(0)
  shown = text if code else output
  return [code, shown.getvalue(), raised]


def _late(signum, frame):
  raise Late(f'not done in {SECONDS} seconds')


def forked(name, commands):
  """The results of `call` for each, from its own process."""
  read, write = os.pipe()
  if os.fork():
    os.close(write)
    with open(read, encoding='utf-8') as found:
      text = found.read()
    os.wait()
    return json.loads(text) if text else f'{name}: the process ended'
  os.close(read)
  program = entry(name)
  logging.set_verbosity(logging.ERROR)
  found = [call(*program, arguments) for arguments in commands]
  with open(write, 'w', encoding='utf-8') as file:
    json.dump(found, file)
  os._exit(0)


if __name__ == '__main__':
  signal.signal(signal.SIGALRM, _late)
  # What most binaries import; no module with flags.
  import rl_jax.runs.evaluation
  import rl_jax.runs.loop  # noqa: F401

  for line in sys.stdin:
    folder, asked = json.loads(line)
    os.chdir(folder)
    found = {name: forked(name, lists) for name, lists in asked.items()}
    print(json.dumps(found), flush=True)
