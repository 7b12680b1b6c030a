"""Commands in their own processes, which get the signals of this one."""

from collections.abc import Sequence
import os
import pathlib
import signal
import site
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]  # has the packages


def program(name: str, *flags: str) -> list[str]:
  """The command of a program of experiments, whatever the working directory is.

  A package called experiments there, where `python -m` looks first, is not
  taken (-P).
  """
  return [sys.executable, '-P', '-m', 'experiments.cli', name, *flags]


def environment() -> dict[str, str]:
  """The environment of this process, with our packages on PYTHONPATH."""
  if str(ROOT) in site.getsitepackages():
    return dict(os.environ)
  path = os.environ.get('PYTHONPATH')
  joined = os.pathsep.join([str(ROOT), path] if path else [str(ROOT)])
  return {**os.environ, 'PYTHONPATH': joined}


def run_all(commands: Sequence[list[str]]) -> list[int]:
  """Runs them at the same time; their exit codes, once all have ended.

  SIGTERM, SIGINT and SIGHUP are passed on. A terminal may have signalled the
  processes, too: two signals at once count as one (`runtime.stop_signal`).
  """
  processes, received = [], []

  def forward(number, _):
    received.append(number)
    for process in processes:
      process.send_signal(number)

  before = {}
  for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) != signal.SIG_IGN:  # which they inherit
      before[number] = signal.signal(number, forward)
  try:
    for command in commands:
      processes.append(subprocess.Popen(command, env=environment()))
    for number in tuple(received):  # before the last one was there
      for process in processes:
        process.send_signal(number)
    return [process.wait() for process in processes]
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
