"""Calls of binaries by command lines, for several files of tests."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope='session', name='answers_of')
def _answers_of():
  """(folder, {binary: argument lists}) -> {binary: answers}: wrong_flags.py.

  One process of it answers all tests of this one.
  """
  path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
  with (
    tempfile.TemporaryFile('w+') as errors,
    subprocess.Popen(
      [sys.executable, ROOT / 'tests/experiments/wrong_flags.py'],
      env={**os.environ, 'PYTHONPATH': path, 'JAX_PLATFORMS': 'cpu'},
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=errors,
      text=True,
    ) as server,
  ):

    def answers_of(folder, commands):
      print(json.dumps([str(folder), commands]), file=server.stdin, flush=True)
      line = server.stdout.readline()
      errors.seek(0)
      assert line, errors.read()
      return json.loads(line)

    yield answers_of
    server.stdin.close()
