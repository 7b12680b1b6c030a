"""Signals become a flag; handlers are restored."""

import os
import signal
import threading

import pytest

from rl_jax.runtime import stop_signal
from rl_jax.runtime.stop_signal import StopSignal


@pytest.fixture(autouse=True)
def foreground():
  """Signals as in a terminal: shell jobs ignore SIGINT, nohup SIGHUP."""
  before = {
    signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
    signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
  }
  yield
  for number, handler in before.items():
    signal.signal(number, handler)


@pytest.mark.parametrize(
  'number, code', [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_the_first_signal_sets_the_flag(number, code):
  before = signal.getsignal(number)
  with StopSignal() as stop:
    assert not stop.requested
    stop.exit_if_requested()
    os.kill(os.getpid(), number)
    assert stop.requested and stop.exit_code == code
    with pytest.raises(SystemExit) as left:
      stop.exit_if_requested()
    assert left.value.code == code
  assert signal.getsignal(number) is before


def test_a_later_ctrl_c_stops_at_once(monkeypatch):
  """A save that hangs must not make the process unstoppable."""
  monkeypatch.setattr(stop_signal, '_SAME_SECONDS', 0.0)
  before = signal.getsignal(signal.SIGTERM)
  with pytest.raises(KeyboardInterrupt), StopSignal():
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
  with StopSignal() as stop:
    os.kill(os.getpid(), signal.SIGINT)
    assert stop.requested  # asked before a save
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize('second', [signal.SIGINT, signal.SIGHUP])
def test_a_request_that_comes_twice_is_one(second):
  """A closed terminal and `timeout` signal a process and its whole group."""
  with StopSignal() as stop:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), second)
    assert stop.requested and stop.exit_code == 130


def test_off_the_main_thread_only_request_works():
  codes = []

  def run():
    with StopSignal() as stop:
      stop.request(signal.SIGINT)
      codes.append(stop.exit_code)

  before = signal.getsignal(signal.SIGINT)
  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  assert codes == [130]
  assert signal.getsignal(signal.SIGINT) is before


def test_a_lost_terminal_saves_unless_nohup_ignores_it():
  """SIGHUP is as SIGTERM; where it was ignored it stays so."""
  with StopSignal() as stop:
    signal.raise_signal(signal.SIGHUP)
    assert stop.exit_code == 129
  before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
  try:
    with StopSignal() as stop:
      signal.raise_signal(signal.SIGHUP)
      assert stop.exit_code is None
  finally:
    signal.signal(signal.SIGHUP, before)
