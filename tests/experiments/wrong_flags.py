"""Runs a binary of experiments with many wrong command lines, in one process.

    python tests/experiments/wrong_flags.py NAME < commands.json

Reads a JSON list of argument lists and prints a JSON list of [exit code,
standard error, what was raised or null]. A call has SECONDS.
"""

import contextlib
import io
import json
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


if __name__ == '__main__':
  signal.signal(signal.SIGALRM, _late)
  commands = json.load(sys.stdin)
  program = entry(sys.argv[1])
  logging.set_verbosity(logging.ERROR)
  json.dump([call(*program, arguments) for arguments in commands], sys.stdout)
