"""Reads traces of --timeline, and draws some of them over one another.

python -m experiments.benchmarks.traces --out=episodes.png \\
  'on policy=DIR/fixed K=0.json' 'one early=DIR/fixed K=1.json'

A panel for each trace, from the closing of update --after on: where the device
works, and how many calls run.
"""

import argparse
from collections.abc import Sequence
import json
import os
from typing import Any, NamedTuple

import numpy as np

from experiments.reports import figures


class Span(NamedTuple):
  """The work of a line from start to end, in seconds of one clock."""

  line: str
  name: str
  start: float
  end: float
  args: dict[str, Any]

  @property
  def seconds(self) -> float:
    """Its length."""
    return self.end - self.start


def read(path: str | os.PathLike[str]) -> list[Span]:
  """The spans of a trace, in the order of their starts."""
  with open(path, encoding='utf-8') as file:
    events = json.load(file)['traceEvents']
  lines = {
    event['tid']: event['args']['name']
    for event in events
    if event['name'] == 'thread_name'
  }
  found = [
    Span(
      lines[event['tid']],
      event['name'],
      event['ts'] / 1e6,
      (event['ts'] + event['dur']) / 1e6,
      event['args'],
    )
    for event in events
    if event['ph'] == 'X'
  ]
  return sorted(found, key=lambda span: span.start)


def covered(
  spans: Sequence[Span], line: str, start: float, end: float
) -> float:
  """The seconds between start and end in which the line does something."""
  seconds, reached = 0.0, start
  for span in sorted(spans, key=lambda span: span.start):
    if span.line == line and span.end > reached and span.start < end:
      last = min(span.end, end)
      seconds += last - max(span.start, reached)
      reached = last
  return seconds


def running(
  spans: Sequence[Span], prefix: str
) -> tuple[list[float], list[int]]:
  """(times, spans of such lines that run from each of them on)."""
  own = [span for span in spans if span.line.startswith(prefix)]
  changes = [(span.start, 1) for span in own]
  changes += [(span.end, -1) for span in own]
  times, counts, count = [], [], 0
  for when, change in sorted(changes):
    count += change
    times.append(when)
    counts.append(count)
  return times, counts


def between(spans: Sequence[Span], after: int) -> list[Span]:
  """The spans from the closing of update `after` to the last closing."""
  closings = [span for span in spans if span.line == 'closings']
  (start,) = [x.end for x in closings if x.name == f'update {after}']
  end = closings[-1].end
  return [span for span in spans if start <= span.start and span.end <= end]


def draw(traces: Sequence[tuple[str, list[Span]]], path: str) -> None:
  """Writes a PNG with a panel for each (title, spans)."""
  figure = figures.new_figure(9.0, 1.9 * len(traces))
  lengths = [spans[-1].end - spans[0].start for _, spans in traces]
  panels = figure.subplots(len(traces), 1, squeeze=False).ravel()
  for (title, spans), length, panel in zip(
    traces, lengths, panels, strict=True
  ):
    first = spans[0].start
    times, counts = running(spans, 'calls')
    panel.step(np.array(times) - first, counts, where='post', linewidth=0.8)
    for label, colour in (('samples', '#0072B2'), ('trains', '#D55E00')):
      own = [
        (span.start - first, span.seconds)
        for span in spans
        if span.line == 'device'
        and span.name.startswith('update') == (label == 'trains')
      ]
      panel.broken_barh(own, (-6, 5), color=colour, label=label)
    busy = covered(spans, 'device', first, first + length) / length
    panel.set_title(
      f'{title}: the device works {busy:.0%} of {length:.0f} s', fontsize=9
    )
    panel.set_xlim(0, max(lengths))
    panel.set_ylabel('calls', fontsize=8)
  panels[0].legend(frameon=False, fontsize=8, loc='upper right')
  panels[-1].set_xlabel('seconds')
  figure.savefig(path, dpi=90)


def main() -> None:
  """Draws the traces."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('traces', nargs='+', help='TITLE=PATH')
  parser.add_argument('--after', type=int, default=2, help='an update')
  parser.add_argument('--out', required=True, help='PNG')
  args = parser.parse_args()
  titled = [text.split('=', 1) for text in args.traces]
  shown = [(title, between(read(path), args.after)) for title, path in titled]
  draw(shown, args.out)


if __name__ == '__main__':
  main()
