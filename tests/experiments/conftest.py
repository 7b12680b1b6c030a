"""How binaries answer command lines, for several files of tests."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope='session', name='answers_of')
def _answers_of():
  """(folder, {binary: argument lists}) -> {binary: answers}: wrong_flags.py."""

  def answers_of(folder, commands):
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run(
      [sys.executable, ROOT / 'tests/experiments/wrong_flags.py'],
      input=json.dumps(commands),
      cwd=folder,
      env={**os.environ, 'PYTHONPATH': path, 'JAX_PLATFORMS': 'cpu'},
      capture_output=True,
      text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

  return answers_of
