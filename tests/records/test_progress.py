"""The progress line, in a terminal and in a log file."""

import io
import os
import subprocess
import sys
import textwrap
import time

import pytest

from rl_jax.records.progress import RECORDED, Progress, duration

METRICS = {
  'reward/mean': 0.51234,
  'policy/entropy': 1.5,
  'policy/kl_ref': 0.0123,
  'time/tokens_per_second': 12345.6,
}


def test_plain_lines_where_no_terminal_is():
  out = io.StringIO()
  with Progress(10, first=2, file=out) as progress:
    progress.update({'step': 3, **METRICS})
    progress.update({}, 4)
  first, second = out.getvalue().splitlines()
  assert first.startswith(
    'iteration 3/10  reward 0.512  entropy 1.500  KL 0.012  tokens/s 12,346'
  )
  # The first iteration includes compilation and is not used.
  assert 'left' not in first
  assert second.startswith('iteration 4/10  ') and second.endswith(' left')
  assert '\x1b' not in out.getvalue()


def test_runs_on_recorded_responses_show_their_loss():
  """A limit of iterations that will not be reached has no time left."""
  out = io.StringIO()
  with Progress(10**15, file=out, columns=RECORDED) as progress:
    for step in (1, 2):
      progress.update({'step': step, 'train/loss': 0.25, **METRICS})
      time.sleep(0.01)
  line = out.getvalue().splitlines()[-1]
  assert line == f'iteration 2/{10**15}  loss 0.250  entropy 1.500'


def test_plain_lines_are_thinned_but_never_the_last():
  out = io.StringIO()
  with Progress(50, file=out, shown=False) as progress:
    progress.update({'step': 50})
  assert out.getvalue() == ''
  with Progress(50, file=out, plain_every_seconds=3600) as progress:
    for done in range(1, 51):
      progress.update(METRICS, done)
  starts = [line.split('  ')[0] for line in out.getvalue().splitlines()]
  assert starts == ['iteration 1/50', 'iteration 50/50']


def test_a_terminal_gets_one_line_that_is_rewritten():
  """On a pseudo-terminal the line is overwritten, so ends are counted once."""
  code = textwrap.dedent("""
    from rl_jax.records.progress import Progress
    with Progress(30) as progress:
      for done in range(1, 31):
        progress.update({'step': done, 'reward/mean': done / 30})
  """)
  parent, child = os.openpty()
  process = subprocess.Popen(
    [sys.executable, '-c', code],
    stderr=child,
    env={**os.environ, 'TERM': 'xterm', 'COLUMNS': '120'},
  )
  os.close(child)
  data = b''
  try:
    while chunk := os.read(parent, 65536):
      data += chunk
  except OSError:  # Linux reports the end of a pseudo-terminal as EIO.
    pass
  os.close(parent)
  assert process.wait() == 0
  assert b'iteration 30/30  reward 1.000' in data
  assert data.count(b'\n') <= 2


def test_non_finite_and_unknown_metrics_do_not_break_the_line():
  out = io.StringIO()
  with Progress(1, file=out) as progress:
    progress.update({'reward/mean': float('nan'), 'other': 1}, 1)
  assert 'reward nan' in out.getvalue()


def test_duration():
  assert [duration(s) for s in (5, 65.9, 3723)] == ['0:05', '1:05', '1:02:03']


class Failing(io.StringIO):
  """A stream whose writes fail as those of a full disk or a closed pipe."""

  def __init__(self, error):
    super().__init__()
    self.error = error

  def write(self, *unused):
    raise self.error

  flush = write


@pytest.mark.parametrize(
  'error', [OSError(28, 'full'), BrokenPipeError(), ValueError('closed file')]
)
def test_a_stream_that_fails_costs_its_lines_only(error):
  """rich ends the program at a closed pipe."""
  with Progress(10, file=Failing(error)) as progress:
    for step in range(3):
      progress.update({'step': step})
