"""Curves of one or more runs as a PNG.

  python -m experiments.plot --workdirs=runs/grpo,runs/dapo --out=curves.png
    --x=tokens --metrics=reward/mean,policy/entropy

Runs whose paths differ only in a last part `seed<number>` are drawn as one
line: the mean over seeds, with a band from the lowest to the highest.
"""

from collections.abc import Mapping, Sequence
import math
import os
import re
from typing import Any

from absl import flags
from etils import epath
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
import matplotlib.ticker
import numpy as np

from experiments.flags import configuration
from rl_jax.records.metrics import METRICS, read_jsonl

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

Rows = Sequence[Mapping[str, Any]]


def labels(workdirs: Sequence[str]) -> list[str]:
  """A label for each workdir, shared by seeds, without common parents.

  Raises ValueError if two workdirs are the same.
  """
  paths = [os.path.normpath(w) for w in workdirs]
  if len(set(paths)) != len(paths):
    raise ValueError(f'a workdir is given twice: {", ".join(workdirs)}')
  names = [re.sub(r'[/_-]?seed_?\d+$', '', path) for path in paths]
  if len(set(names)) < 2:
    return [os.path.basename(name) for name in names]
  shared = os.path.commonpath(names)
  return [os.path.relpath(name, shared) for name in names]


def load_runs(workdirs: Sequence[str]) -> dict[str, list[Rows]]:
  """Label -> the rows of each of its seeds.

  Raises:
    FileNotFoundError: a workdir has no metrics.jsonl.
    ValueError: two workdirs are the same.
  """
  runs: dict[str, list[Rows]] = {}
  for path, label in zip(workdirs, labels(workdirs), strict=True):
    if not (epath.Path(path) / METRICS).exists():
      raise FileNotFoundError(f'{os.path.normpath(path)} has no {METRICS}')
    runs.setdefault(label, []).append(read_jsonl(epath.Path(path) / METRICS))
  return runs


def curve(
  rows: Rows, x_name: str, y_name: str
) -> tuple[np.ndarray, np.ndarray]:
  """The points of one run where both metrics are finite."""
  points = [
    (row[x_name], row[y_name])
    for row in rows
    if math.isfinite(row.get(x_name, math.nan))
    and math.isfinite(row.get(y_name, math.nan))
  ]
  xs, ys = zip(*points, strict=True) if points else ((), ())
  return np.asarray(xs, float), np.asarray(ys, float)


def smooth(ys: np.ndarray, window: int) -> np.ndarray:
  """Centred moving average that narrows at the ends."""
  if window <= 1 or len(ys) == 0:
    return ys
  ones = np.ones(min(window, len(ys)))
  return np.convolve(ys, ones, 'same') / np.convolve(
    np.ones(len(ys)), ones, 'same'
  )


def _draw(axes, seeds: list[Rows], x_name, metric, style) -> bool:
  """Draws one label's curves; False if no seed has the metric."""
  window = style.pop('window')
  curves = [curve(rows, x_name, metric) for rows in seeds]
  curves = [(xs, ys) for xs, ys in curves if len(xs)]
  if not curves:
    return False
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
    return True
  # The mean is drawn where all seeds have values, interpolated between them.
  low = max(xs[0] for xs, _ in curves)
  high = min(xs[-1] for xs, _ in curves)
  grid = np.unique(np.concatenate([xs for xs, _ in curves]))
  grid = grid[(grid >= low) & (grid <= high)]
  ys = np.stack([np.interp(grid, xs, smooth(y, window)) for xs, y in curves])
  style['label'] += f' ({len(curves)} seeds)'
  axes.plot(grid, ys.mean(0), **style)
  axes.fill_between(
    grid, ys.min(0), ys.max(0), color=style['color'], alpha=0.15, linewidth=0
  )
  return True


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
) -> list[str]:
  """Writes one PNG with a panel per metric; returns the metrics drawn.

  Args:
    runs: label -> the rows of each seed, as `load_runs` returns.
    out: the file to write.
    x: 'iteration', 'tokens' or 'seconds'.
    metrics: names; those that no run has are left out.
    window: points of the moving average; raw points are drawn faintly.
    title: above all panels.

  Raises:
    ValueError: no run has any of the metrics; the message lists what exists.
  """
  x_name, x_label = X_AXES[x]
  drawn = _present(runs, x_name, metrics)
  columns = min(2, len(drawn))
  lines = -(-len(drawn) // columns)
  figure = Figure(figsize=(5.2 * columns, 3.2 * lines), layout='constrained')
  panels = figure.subplots(lines, columns, squeeze=False).ravel()
  handles: dict[str, Any] = {}
  for axes, metric in zip(panels, drawn, strict=False):
    for i, (label, seeds) in enumerate(runs.items()):
      color = COLORS[i % len(COLORS)]
      style = {'label': label, 'color': color, 'window': window}
      # After seven labels colours repeat with another line style.
      style['linestyle'] = ('-', '--', ':')[i // len(COLORS) % 3]
      _draw(axes, list(seeds), x_name, metric, style)
    _tidy(axes, metric, x_label)
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
      handles.setdefault(label, handle)
  for axes in panels[len(drawn) :]:
    axes.set_visible(False)
  if len(runs) > 1:
    figure.legend(
      handles.values(),
      handles.keys(),
      loc='outside lower center',
      ncols=min(len(handles), 4),
      frameon=False,
    )
  if title:
    figure.suptitle(title, fontsize=12)
  path = epath.Path(out)
  path.parent.mkdir(parents=True, exist_ok=True)
  FigureCanvasAgg(figure)
  with path.open('wb') as file:
    figure.savefig(file, format='png', dpi=130)
  return drawn


def _tidy(axes, metric: str, x_label: str) -> None:
  axes.set_title(metric, fontsize=11, loc='left')
  axes.set_xlabel(x_label, fontsize=9)
  axes.tick_params(labelsize=9)
  axes.grid(axis='y', color='0.9', linewidth=0.8)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
  axes.margins(x=0.02)
  if x_label != 'iteration':
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=''))
  else:
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))


def main(argv: Sequence[str]) -> None:
  del argv
  runs = load_runs(_WORKDIRS.value)
  drawn = plot_curves(
    runs,
    _OUT.value,
    x=_X.value,
    metrics=_METRICS.value,
    window=_WINDOW.value,
  )
  print(f'{_OUT.value}: {", ".join(drawn)}')


if __name__ == '__main__':
  _WORKDIRS = flags.DEFINE_list(
    'workdirs', None, 'Work directories of runs.', required=True
  )
  _OUT = flags.DEFINE_string('out', None, 'PNG to write.', required=True)
  _X = flags.DEFINE_enum('x', 'iteration', list(X_AXES), 'Horizontal axis.')
  _METRICS = flags.DEFINE_list(
    'metrics', list(DEFAULT_METRICS), 'One panel each.'
  )
  _WINDOW = flags.DEFINE_integer('window', 1, 'Points of a moving average.')
  configuration.run(main)
