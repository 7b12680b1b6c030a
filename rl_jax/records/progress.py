"""One progress line, live in a terminal, a plain line per report elsewhere."""

from collections.abc import Mapping
import math
import sys
import time
from typing import Any, TextIO

from rl_jax.optional import require
from rl_jax.runtime import output

# Label, metric names in order of preference, format; of runs on samples, and
# of those on recorded responses only.
Columns = tuple[tuple[str, tuple[str, ...], str], ...]
SAMPLED: Columns = (
  ('reward', ('reward/mean',), '{:.3f}'),
  ('entropy', ('policy/entropy',), '{:.3f}'),
  ('KL', ('policy/kl_ref', 'policy/kl_old'), '{:.2g}'),
  ('tokens/s', ('time/tokens_per_second',), '{:,.0f}'),
)
RECORDED: Columns = (
  ('loss', ('train/loss',), '{:.3f}'),
  ('entropy', ('policy/entropy',), '{:.3f}'),
)
_FAR = 100 * 86400.0  # a time left beyond is that of a limit never reached


def duration(seconds: float) -> str:
  """Hours, minutes and seconds: 1:02:03 or 2:03."""
  minutes, rest = divmod(int(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return f'{hours}:{minutes:02}:{rest:02}' if hours else f'{minutes}:{rest:02}'


def _rich(name: str) -> Any:
  return require(f'rich.{name}', 'the progress line')


class Progress:
  """Context manager that shows iteration, columns and the time left.

  total: iterations of the whole run; first: iterations done before.
  file: by default standard error; it may fail. plain_every_seconds: how often a
    line is printed without a terminal (the last iteration is always printed).
  shown: False prints nothing, for all processes but one.
  """

  def __init__(
    self,
    total: int,
    first: int = 0,
    *,
    label: str = 'iteration',
    columns: Columns = SAMPLED,
    file: TextIO | None = None,
    plain_every_seconds: float = 0.0,
    shown: bool = True,
  ):
    self._total, self._label, self._columns = total, label, columns
    self._every = plain_every_seconds
    stream = output.Tolerant(sys.stderr if file is None else file)
    self._console = _rich('console').Console(
      file=stream, highlight=False, soft_wrap=True
    )
    self._live, self._shown = None, shown
    if shown and self._console.is_terminal:
      self._live = _rich('live').Live(
        console=self._console, auto_refresh=False, transient=False
      )
    self._done, self._updates = first, 0
    self._seconds_each: float | None = None
    self._last_time = time.monotonic()
    self._last_print = -math.inf

  def __enter__(self) -> 'Progress':
    if self._live is not None:
      self._live.start()
    return self

  def __exit__(self, *unused) -> None:
    if self._live is not None:
      self._live.stop()

  def line(self, metrics: Mapping[str, Any]) -> str:
    """The text for the current iteration, of those columns that are known."""
    parts = [f'{self._label} {self._done}/{self._total}']
    for label, names, form in self._columns:
      for name in names:
        if name in metrics:
          parts.append(f'{label} ' + form.format(float(metrics[name])))
          break
    if self._seconds_each is not None:
      left = self._seconds_each * (self._total - self._done)
      if left < _FAR:
        parts.append(f'{duration(left)} left')
    return '  '.join(parts)

  def update(self, row: Mapping[str, Any], done: int | None = None) -> None:
    """Shows a row of metrics; `done` iterations, else row['step'], are done."""
    done = row['step'] if done is None else done
    now = time.monotonic()
    if done > self._done and self._updates:
      each = (now - self._last_time) / (done - self._done)
      before = each if self._seconds_each is None else self._seconds_each
      self._seconds_each = before + 0.1 * (each - before)
    # The first iteration includes compilation and is not averaged.
    self._updates += 1
    self._done, self._last_time = done, now
    text = self.line(row)
    if self._live is not None:
      line = _rich('text').Text(text, no_wrap=True)
      self._live.update(line, refresh=True)
    elif not self._shown:
      return
    elif done >= self._total or now - self._last_print >= self._every:
      self._last_print = now
      self._console.print(_rich('text').Text(text))
