"""SIGTERM, SIGHUP and Ctrl-C are a flag that is read between iterations."""

import signal
import sys
import threading
import time

from absl import logging

from rl_jax.runtime import processes

SIGTERM_EXIT_CODE = 143  # 128 + SIGTERM: saved, run again to continue.
SIGHUP_EXIT_CODE = 129  # 128 + SIGHUP (the terminal is gone): likewise.
SIGINT_EXIT_CODE = 130  # 128 + SIGINT (Ctrl-C): likewise.
_SAME_SECONDS = 1.0  # in which signals count as one


class StopSignal:
  """Context manager: the first signal asks to stop, a later one stops at once.

  What comes within a second of the first is the same request: a terminal that
  closes, `timeout`, schedulers and a pipeline tell a process more than once.

  with StopSignal() as stop:
    for iteration in ...:
      ...
      if stop.requested:
        save()
        stop.exit_if_requested()

  Outside the main thread, where Python accepts no handlers, only `request`
  works. If one of several processes gets a signal, all stop at the same
  iteration: the request is sent with their next exchange.
  """

  _EXIT_CODES = {
    signal.SIGTERM: SIGTERM_EXIT_CODE,
    signal.SIGINT: SIGINT_EXIT_CODE,
    signal.SIGHUP: SIGHUP_EXIT_CODE,
  }

  def __init__(self):
    self.exit_code: int | None = None
    self._before = {}
    self._since: float | None = None  # the first signal

  @property
  def requested(self) -> bool:
    """Returns whether the run should save and end."""
    if self._is_past():  # no code that hangs keeps the handlers from acting
      self._restore()
    return self._agreed_code() is not None

  def exit_if_requested(self) -> None:
    """Raises SystemExit with the documented code if there was a signal."""
    code = self._agreed_code()
    if code is not None:
      sys.exit(code)

  def _agreed_code(self) -> int | None:
    return processes.agreed('exit_code', self.exit_code)

  def request(self, number: int = signal.SIGTERM) -> None:
    """Has the effect of the signal."""
    self.exit_code = self._EXIT_CODES[signal.Signals(number)]

  def __enter__(self) -> 'StopSignal':
    if threading.current_thread() is threading.main_thread():
      for number in self._EXIT_CODES:
        if signal.getsignal(number) == signal.SIG_IGN:  # by nohup
          continue
        self._before[number] = signal.signal(number, self._handle)
    return self

  def __exit__(self, *unused) -> None:
    self._restore()

  def _restore(self) -> None:
    while self._before:
      signal.signal(*self._before.popitem())

  def _is_past(self) -> bool:
    """Returns whether a signal from now on is another request."""
    since = self._since
    return since is not None and time.monotonic() - since >= _SAME_SECONDS

  def _handle(self, number, unused_frame) -> None:
    if self._is_past():
      self._restore()
      signal.raise_signal(number)
    elif self._since is None:
      self._since = time.monotonic()
      self.request(number)
      logging.warning(
        '%s: saving after this iteration; another signal later stops at once',
        signal.Signals(number).name,
      )
