"""Curves of one or more runs as a PNG.

  python -m experiments.plot --workdir=runs/grpo --workdir=runs/dapo
    --out=curves.png --x=tokens --metrics=reward/mean,policy/entropy
  python -m experiments.plot --workdir=runs/sweep --out=curves.png

A directory that is not a run itself stands for all runs below it. Runs that
differ only in the seed are drawn as one line: their mean, with a band of 95%
(Student's t); of two seeds the band is from one to the other.
"""

from collections.abc import Mapping, Sequence
import os
import sys
from typing import Any

from absl import flags
from etils import epath
import numpy as np

from experiments.flags import configuration, outputs, places
from experiments.reports import figures
from experiments.reports import workdirs as workdirs_lib
from experiments.tables import intervals
from rl_jax.records import metrics as metrics_lib

DEFAULT_METRICS = (
  'reward/mean',
  'policy/entropy',
  'rollout/length',
  'evaluation/pass_at_1',
)
# Axis -> (metric, label).
X_AXES = {
  'iteration': ('step', 'iteration'),
  'tokens': ('rollout/tokens_total', 'generated tokens'),
  'seconds': ('time/wall_seconds', 'wall seconds'),
}
# Okabe and Ito's palette: distinct to colour-blind readers and in print.
COLORS = (
  '#0072B2',
  '#D55E00',
  '#009E73',
  '#CC79A7',
  '#E69F00',
  '#56B4E9',
  '#000000',
)

LARGEST = 1e200  # of a value that is drawn: axes are wider than their values

Rows = Sequence[Mapping[str, Any]]


def load_runs(
  workdirs: Sequence[str], metrics: Sequence[str] = ()
) -> dict[str, list[Rows]]:
  """Label -> the rows of each of its seeds; prints notes on damaged files.

  And on values of the metrics that cannot be drawn.

  Raises ValueError if a path holds no run, or no run has a row.
  """
  runs: dict[str, list[Rows]] = {}
  notes = []
  for run in workdirs_lib.read_runs(workdirs):
    notes += [
      f'{run.path}: {note}' for note in run.notes if metrics_lib.METRICS in note
    ]
    for name in metrics:
      values = [row[name] for row in run.rows if name in row]
      if count := sum(not _is_drawn(value) for value in values):
        notes.append(
          f'{run.path}: {count} of {len(values)} values of {name} are '
          f'infinite, NaN, beyond {LARGEST:g} or no numbers: they are left out'
        )
    if run.rows:
      runs.setdefault(run.label, []).append(run.rows)
  if not runs:
    raise ValueError(f'no run has metrics yet: {"; ".join(notes)}')
  for note in notes:
    print(note, file=sys.stderr)
  return runs


def curve(
  rows: Rows, x_name: str, y_name: str
) -> tuple[np.ndarray, np.ndarray]:
  """The points of one run where both metrics can be drawn."""
  points = [
    (row[x_name], row[y_name])
    for row in rows
    if _is_drawn(row.get(x_name)) and _is_drawn(row.get(y_name))
  ]
  xs, ys = zip(*points, strict=True) if points else ((), ())
  return np.asarray(xs, float), np.asarray(ys, float)


def _is_drawn(value: Any) -> bool:
  """Returns whether it is a finite number of a size that an axis can hold."""
  return isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST


def smooth(ys: np.ndarray, window: int) -> np.ndarray:
  """Centred moving average that narrows at the ends."""
  if window <= 1 or len(ys) == 0:
    return ys
  ones = np.ones(min(window, len(ys)))
  return np.convolve(ys, ones, 'same') / np.convolve(
    np.ones(len(ys)), ones, 'same'
  )


def _draw(axes, seeds: list[Rows], x_name, metric, style) -> Any:
  """Draws one label's curves; returns (xs, ys) of its line, None if empty."""
  window = style.pop('window')
  curves = [curve(rows, x_name, metric) for rows in seeds]
  curves = [(xs, ys) for xs, ys in curves if len(xs)]
  if not curves:
    return None
  # Few points, such as evaluations, get markers and no smoothing.
  sparse = max(len(xs) for xs, _ in curves) <= 30
  window, marker = (1, 'o') if sparse else (window, '')
  style |= {'marker': marker, 'markersize': 3.5, 'linewidth': 1.8}
  if len(curves) == 1:
    xs, ys = curves[0]
    if window > 1:
      faint = {k: style[k] for k in ('color',)}
      axes.plot(xs, ys, alpha=0.25, linewidth=0.8, **faint)
    axes.plot(xs, smooth(ys, window), **style)
    return xs, smooth(ys, window)
  # The mean is drawn where all seeds have values, interpolated between them.
  low = max(xs[0] for xs, _ in curves)
  high = min(xs[-1] for xs, _ in curves)
  grid = np.unique(np.concatenate([xs for xs, _ in curves]))
  grid = grid[(grid >= low) & (grid <= high)]
  ys = np.stack([np.interp(grid, xs, smooth(y, window)) for xs, y in curves])
  style['label'] += f' ({len(curves)} seeds)'
  axes.plot(grid, ys.mean(0), **style)
  low, high = band(ys)
  axes.fill_between(
    grid, low, high, color=style['color'], alpha=0.15, linewidth=0
  )
  return grid, ys.mean(0)


def band(value_SI: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """(low, high) [I]: 95% of the mean over seeds; of two seeds both values.

  Student's interval of two values is 13 times as wide as they are apart, and
  says nothing in a plot.
  """
  if len(value_SI) == 2:
    return value_SI.min(0), value_SI.max(0)
  return intervals.mean_interval(value_SI.T)


def limits(lines: Sequence[np.ndarray]) -> tuple[float, float] | None:
  """Range of the vertical axis if single outliers would flatten the curves.

  Medians of five neighbours follow a curve and not its outliers. Values that
  lie further from their range than its size are cut; None: there are none.
  Of fewer than 20 points, such as evaluations, none is an outlier.
  """
  medians = [
    np.median(ys[max(0, i - 2) : i + 3]) if len(ys) >= 20 else ys[i]
    for ys in lines
    for i in range(len(ys))
  ]
  if not medians:
    return None
  low, high = min(medians), max(medians)
  size, every = high - low, np.concatenate(lines)
  if size <= 0 or low - size <= every.min() and every.max() <= high + size:
    return None
  inside = every[(every >= low - size) & (every <= high + size)]
  low, high = inside.min(), inside.max()
  return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _cut(axes, drawn: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
  """Cuts outliers off the axis, with a mark for each at the edge."""
  found = limits([ys for _, ys in drawn])
  if found is None:
    return
  axes.set_ylim(*found)
  for edge, sign, marker in ((found[0], -1, 'v'), (found[1], 1, '^')):
    xs = [xs[sign * (ys - edge) > 0] for xs, ys in drawn]
    marks = np.concatenate(xs)
    axes.plot(
      marks,
      np.full(len(marks), edge),
      marker,
      color='black',
      markersize=5,
      clip_on=False,
    )


def _present(runs, x_name: str, metrics: Sequence[str]) -> list[str]:
  """The metrics that at least one run has."""
  names = {
    n for seeds in runs.values() for rows in seeds for r in rows for n in r
  }
  drawn = [m for m in metrics if m in names]
  if not drawn or x_name not in names:
    raise ValueError(
      f'no run has {x_name} and one of {", ".join(metrics)}; '
      f'there are: {", ".join(sorted(names))}'
    )
  return drawn


def plot_curves(
  runs: Mapping[str, Sequence[Rows]],
  out: str | os.PathLike[str],
  *,
  x: str = 'iteration',
  metrics: Sequence[str] = DEFAULT_METRICS,
  window: int = 1,
  title: str = '',
  log: bool = False,
) -> list[str]:
  """Writes one PNG with a panel per metric; returns the metrics drawn.

  Args:
    runs: label -> the rows of each seed, as `load_runs` returns.
    out: the file to write.
    x: 'iteration', 'tokens' or 'seconds'.
    metrics: names; those that no run has are left out.
    window: points of the moving average; raw points are drawn faintly.
    title: above all panels.
    log: the vertical axes are logarithmic; values up to 0 are left out.

  Raises:
    ValueError: no run has any of the metrics; the message lists what exists.
  """
  x_name, x_label = X_AXES[x]
  drawn = _present(runs, x_name, metrics)
  columns = min(2, len(drawn))
  lines = -(-len(drawn) // columns)
  figure = figures.new_figure(5.2 * columns, 3.2 * lines)
  panels = figure.subplots(lines, columns, squeeze=False).ravel()
  for axes, metric in zip(panels, drawn, strict=False):
    _panel(axes, runs, x_name, metric, window, log)
    _tidy(axes, metric, x_label)
  for axes in panels[len(drawn) :]:
    axes.set_visible(False)
  if len(runs) > 1:
    _legend(figure, panels[: len(drawn)])
  if title:
    figure.suptitle(title, fontsize=12)
  path = epath.Path(out)
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open('wb') as file:
    figure.savefig(file, format='png', dpi=130)
  return drawn


def _panel(axes, runs, x_name: str, metric: str, window: int, log: bool):
  """The curves of one metric, one for each label."""
  lines = []
  for i, (label, seeds) in enumerate(runs.items()):
    color = COLORS[i % len(COLORS)]
    style = {'label': label, 'color': color, 'window': window}
    # After seven labels colours repeat with another line style.
    style['linestyle'] = ('-', '--', ':')[i // len(COLORS) % 3]
    lines.append(_draw(axes, list(seeds), x_name, metric, style))
  if log:
    axes.set_yscale('log', nonpositive='mask')
  else:
    _cut(axes, [line for line in lines if line is not None])


def _legend(figure, panels) -> None:
  """One for all panels, below them."""
  handles: dict[str, Any] = {}
  for axes in panels:
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
      handles.setdefault(label, handle)
  figure.legend(
    handles.values(),
    handles.keys(),
    loc='outside lower center',
    ncols=_columns(list(handles), figure.get_figwidth()),
    frameon=False,
  )


def _columns(names: Sequence[str], width: float) -> int:
  """Columns of a legend that fit into so many inches; 0.5 for the line."""
  longest = 0.5 + 0.1 * max(map(len, names))
  return max(1, min(len(names), 4, int(width / longest)))


def _tidy(axes, metric: str, x_label: str) -> None:
  axes.set_title(metric, fontsize=11, loc='left')
  axes.set_xlabel(x_label, fontsize=9)
  axes.tick_params(labelsize=9)
  axes.grid(axis='y', color='0.9', linewidth=0.8)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
  axes.margins(x=0.02)
  if x_label != 'iteration':
    axes.xaxis.set_major_formatter(figures.ticker().EngFormatter(sep=''))
  else:
    axes.xaxis.set_major_locator(figures.ticker().MaxNLocator(integer=True))


def main(argv: Sequence[str]) -> None:
  del argv
  outputs.check_regular('out', _OUT.value)
  outputs.check_not_of_run('out', _OUT.value)
  workdirs = places.workdirs(_WORKDIR.value)
  if not workdirs:
    raise ValueError('--workdir is missing')
  runs = load_runs(workdirs, _METRICS.value)
  drawn = plot_curves(
    runs,
    _OUT.value,
    x=_X.value,
    metrics=_METRICS.value,
    window=_WINDOW.value,
    log=_LOG.value,
  )
  print(f'{_OUT.value}: {", ".join(drawn)}')
  left = [name for name in _METRICS.value if name not in drawn]
  if left and _METRICS.present:
    print(f'no run has {", ".join(left)}', file=sys.stderr)


if __name__ == '__main__':
  _WORKDIR = places.define_workdirs('A run, or a directory of runs')
  _OUT = flags.DEFINE_string('out', None, 'PNG to write.', required=True)
  _X = flags.DEFINE_enum('x', 'iteration', list(X_AXES), 'Horizontal axis.')
  _METRICS = flags.DEFINE_list(
    'metrics', list(DEFAULT_METRICS), 'One panel each.'
  )
  _LOG = flags.DEFINE_bool('log', False, 'Logarithmic vertical axes.')
  _WINDOW = flags.DEFINE_integer('window', 1, 'Points of a moving average.')
  configuration.run(main)
