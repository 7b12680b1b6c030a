"""Records of device, slots and calls while episodes are played.

Spans can be written as a trace that Chrome (chrome://tracing) and Perfetto
show: one line for the device, one for each call that runs at a time, one for
the closings of batches.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import json
import math
import os
import time
from typing import Any

from absl import logging
import jax

from rl_jax.episodes.calls import Answer, Request
from rl_jax.runtime.profiling import Window

DEVICE, WAITING, CLOSINGS = 'device', 'waiting', 'closings'
_CALL_LINES = 64  # further calls are counted and not drawn


class Timeline:
  """Traces the iterations of a window; without one it only runs them.

  activity: of the run's episodes; None: it has none. path: of the trace.
  """

  def __init__(
    self,
    window: Window | None = None,
    activity: 'Activity | None' = None,
    path: str = '',
  ):
    self._window, self._path = window, path
    self.activity = Activity() if activity is None else activity

  def run(self, iteration: Callable[[], Any], number: int) -> Any:
    """Returns iteration(); results are waited for where spans are drawn."""
    if self._window is None:
      return iteration()
    first, last = self._window.first, self._window.last
    self.activity.recording = first <= number <= last
    results = iteration()
    if number == last:
      self.close()
    return results

  def updated(self, number: int, state: Any) -> None:
    """An update has started; where spans are drawn, waits for its end."""
    if self.activity.recording:
      with self.activity.span(DEVICE, f'update {number}'):
        jax.block_until_ready(state)
      self.activity.closed(number)

  def close(self) -> None:
    """Writes what was drawn, also of a run that ends in the window."""
    if self.activity.recording:
      self.activity.recording = False
      self.activity.write(self._path)
      logging.info('timeline of episodes in %s', self._path)


def no_tools(request: Request) -> tuple[str, ...]:
  """Returns no names: calls of whatever tool are counted together."""
  del request
  return ()


class Activity:
  """Sums over the play of a batch, for metrics; spans if `recording`.

  tools: of a call, the names of the tools that it makes.
  """

  def __init__(self, tools: Callable[[Request], tuple[str, ...]] = no_tools):
    self.recording, self._tools = False, tools
    self._spans: list[dict[str, Any]] = []
    self._busy_until: list[float] = []  # of the lines of calls
    self._works_since: float | None = None  # the device, None: it rests
    self.begin()

  def begin(self) -> None:
    """Begins a batch: all sums are 0."""
    self._started = time.perf_counter()
    if self._works_since is not None:
      self._works_since = self._started
    self._seconds = dict.fromkeys((DEVICE, WAITING), 0.0)
    self._rows = self._slots = self._bursts = 0
    self._live = self._waits = 0
    self._cached: list[tuple[int, int]] = []  # tokens on (devices, host)
    # (queued, ran) of calls by KIND, and by KIND/TOOL.
    self._calls: dict[str, list[tuple[float, float]]] = {}
    self._slowest = 0.0, (0, 0, 0, '')

  @contextlib.contextmanager
  def span(self, line: str, name: str, **shown: Any) -> Iterator[None]:
    """Adds the seconds of what is inside to those of the line."""
    started = time.perf_counter()
    try:
      yield
    finally:
      ended = time.perf_counter()
      self._seconds[line] = self._seconds.get(line, 0.0) + ended - started
      self._note(line, name, started, ended, shown)

  def works(self) -> None:
    """A program starts; the device has something to do until `worked`."""
    if self._works_since is None:
      self._works_since = time.perf_counter()

  def worked(self, name: str, rests: bool, **shown: Any) -> None:
    """The device has done something since `works`, or since the last such note.

    rests: it has nothing else to do.
    """
    now = time.perf_counter()
    if self._works_since is not None:
      self._seconds[DEVICE] += now - self._works_since
      self._note(DEVICE, name, self._works_since, now, shown)
    self._works_since = None if rests else now

  def burst(self, rows: int, slots: int, live: int, waits: int) -> None:
    """Counts a burst of rows; live: episodes, of which some wait for calls."""
    self._rows, self._slots = self._rows + rows, self._slots + slots
    self._bursts += 1
    self._live, self._waits = self._live + live, self._waits + waits

  def cached(self, device: int, host: int) -> None:
    """Notes how many tokens have their keys there while a burst runs."""
    self._cached.append((device, host))

  def answered(self, answers: Sequence[Answer]) -> None:
    """Counts calls that have just been answered."""
    now = time.perf_counter()
    for one in answers:
      times, kind = (one.queued, one.ran), one.request.kind
      tools = self._tools(one.request)
      for name in (kind, *(f'{kind}/{tool}' for tool in tools)):
        self._calls.setdefault(name, []).append(times)
      self._slowest = max(self._slowest, (sum(times), one.request.key))
      if self.recording:
        self._draw(one, tools, now)

  def closed(self, update: int) -> None:
    """Notes that a batch has been trained on."""
    now = time.perf_counter()
    self._note(CLOSINGS, f'update {update}', now, now, {})

  def metrics(self) -> dict[str, float]:
    """Shares and means since `begin`.

    device/idle_share: of the time, in which no program was running.
    device/slots_share: rows that sampled, of the slots of bursts.
    episodes/live, episodes/waiting: in the mean of the bursts.
    calls/KIND/queued, ran: seconds in the mean; with _p50, _p90 and _max: the
    time that half and nine tenths of the calls stay within, and the longest.
    calls/KIND/count: how many there were. All of these also by tool, as
    calls/step/search/ran; a turn that calls several tools counts at each.
    rollout/waited_for: seconds without a burst.
    cache/device, cache/host: tokens for which rows hold places there, in the
    mean of the bursts, if rollout.cache_tokens has fewer than all rows need.
    """
    elapsed = max(time.perf_counter() - self._started, 1e-9)
    bursts = max(self._bursts, 1)
    found = {
      'device/idle_share': 1.0 - self.seconds(DEVICE) / elapsed,
      'device/slots_share': self._rows / max(self._slots, 1),
      'episodes/live': self._live / bursts,
      'episodes/waiting': self._waits / bursts,
      'rollout/waited_for': self._seconds[WAITING],
    }
    if self._cached:
      device, host = zip(*self._cached, strict=True)
      found['cache/device'] = sum(device) / len(device)
      found['cache/host'] = sum(host) / len(host)
    for kind, times in sorted(self._calls.items()):
      found[f'calls/{kind}/count'] = float(len(times))
      for name, seconds in zip(
        ('queued', 'ran'), zip(*times, strict=True), strict=True
      ):
        found |= _spread(f'calls/{kind}/{name}', seconds)
    return found

  def seconds(self, line: str) -> float:
    """The seconds of a line since `begin`."""
    seconds = self._seconds[line]
    if line == DEVICE and self._works_since is not None:
      seconds += time.perf_counter() - self._works_since
    return seconds

  def slowest(self) -> tuple[float, tuple[int, int, int, str]]:
    """(seconds, key) of the call that has taken longest since `begin`."""
    return self._slowest

  def write(self, path: str | os.PathLike[str]) -> None:
    """Writes the spans as a Chrome trace, and forgets them."""
    names = sorted({span['tid'] for span in self._spans}, key=str)
    named = [
      {
        'name': 'thread_name',
        'ph': 'M',
        'pid': 0,
        'tid': number,
        'args': {'name': name},
      }
      for number, name in enumerate(names)
    ]
    spans = [{**span, 'tid': names.index(span['tid'])} for span in self._spans]
    with open(path, 'w', encoding='utf-8') as file:
      json.dump({'traceEvents': [*named, *spans]}, file)
    self._spans.clear()

  def _draw(self, one, tools, now):
    """Puts a call on the first line that is free while it runs."""
    started = now - one.ran
    lines = enumerate(self._busy_until)
    line = next((n for n, until in lines if until <= started), None)
    if line is None:
      if len(self._busy_until) == _CALL_LINES:
        return
      line = len(self._busy_until)
      self._busy_until.append(0.0)
    self._busy_until[line] = now
    request = one.request
    shown = {
      'group': request.serial,
      'sample': request.sample,
      'turn': request.turn,
      'outcome': one.outcome,
      'queued': one.queued,
    }
    name = ' '.join([request.kind, *tools])
    self._note(f'calls {line:02}', name, started, now, shown)

  def _note(self, line, name, started, ended, shown):
    if self.recording:
      self._spans.append(
        {
          'name': name,
          'ph': 'X',
          'pid': 0,
          'tid': line,
          'ts': started * 1e6,
          'dur': (ended - started) * 1e6,
          'args': shown,
        }
      )


def _spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
  """Mean, quantiles and maximum; a quantile is the time of some call."""
  ordered = sorted(seconds)
  last = len(ordered) - 1
  return {
    name: sum(ordered) / len(ordered),
    f'{name}_p50': ordered[math.ceil(0.5 * last)],
    f'{name}_p90': ordered[math.ceil(0.9 * last)],
    f'{name}_max': ordered[-1],
  }
