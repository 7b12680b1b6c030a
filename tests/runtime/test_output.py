"""Programs continue where their output is full, cut off or closed."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from rl_jax.runtime import output
from absl import logging
output.tolerate_failures()
output.tolerate_failures()
for number in range(2000):
  print('a line of text' * 10)
  logging.warning('a warning')
sys.stdout.flush()
file = open(sys.argv[1], 'w')
assert file.fileno() > 2
file.write('reached')
file.close()
"""
PIECES = {
  'full': '>/dev/full 2>/dev/full',
  'closed': '>&- 2>&- <&-',
  'stdout_closed': '>&- 2>/dev/null',
  'pipe': '2>&1 | head -n 1 >/dev/null',
}


@pytest.mark.parametrize('how', PIECES)
def test_a_program_reaches_its_end(tmp_path, how):
  """With exit code 0, and no file with the number of a standard stream."""
  command = f'"$@" {PIECES[how]}; exit ${{PIPESTATUS[0]}}'
  path = tmp_path / 'file'
  words = [sys.executable, '-c', PROGRAM, str(path)]
  subprocess.run(['bash', '-c', command, 'bash', *words], check=True)
  assert path.read_text() == 'reached'
