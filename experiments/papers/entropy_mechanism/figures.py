"""Figures: entropy and accuracy along training, and accuracy over exp(H)."""

from collections.abc import Mapping
import os

import numpy as np

from experiments import plot
from experiments.papers.entropy_mechanism import fits
from experiments.papers.entropy_mechanism import tables as entropy_tables
from experiments.reports import figures

COURSES = 'courses.png'
LAW = 'law.png'
SHOWN = ('grpo@no_kl', 'clip_cov', 'kl_cov')  # more would not be legible


def draw(lines: list[entropy_tables.Line], folder: str) -> list[str]:
  """Writes both figures; returns their paths."""
  courses = os.path.join(folder, COURSES)
  plot.plot_curves(
    {
      name: [_rows(course) for course in seeds.values()]
      for name, seeds in entropy_tables.compared(lines).items()
      if len(seeds) >= 5 and name.startswith(SHOWN)
    },
    courses,
    x='tokens',
    metrics=('evaluation/entropy', 'evaluation/avg_at_8'),
  )
  law = os.path.join(folder, LAW)
  _draw_law(entropy_tables.baselines(lines), law)
  return [courses, law]


def _rows(course: fits.Course) -> list[dict[str, float]]:
  """The evaluations as rows of metrics."""
  names = {
    'rollout/tokens_total': 'tokens',
    'evaluation/entropy': 'entropy',
    'evaluation/avg_at_8': 'avg_at_8',
  }
  columns = [course[name] for name in names.values()]
  return [
    dict(zip(names, values, strict=True))
    for values in zip(*columns, strict=True)
  ]


def _draw_law(places: Mapping[str, Mapping[int, dict]], out: str) -> None:
  """A panel per task and size: evaluations of all seeds, fitted lines."""
  figure = figures.new_figure(3.0 * len(places), 3.0)
  panels = figure.subplots(1, len(places), squeeze=False).ravel()
  for axes, (name, seeds) in zip(panels, places.items(), strict=True):
    x, y, early = [], [], []
    for course in seeds.values():
      x.append(np.exp(course['entropy']))
      y.append(np.array(course['avg_at_8']))
      early.append(np.arange(len(x[-1])) < fits.first_part(course))
    x, y, early = map(np.concatenate, (x, y, early))
    axes.plot(x[early], y[early], 'o', color=plot.COLORS[1], markersize=3)
    axes.plot(x[~early], y[~early], 'o', color=plot.COLORS[0], markersize=3)
    ends = np.array([x.min(), x.max()])
    for part, style in ((x == x, '-'), (early, ':')):
      slope, intercept = fits.line(x[part], y[part])
      axes.plot(ends, slope * ends + intercept, style, color='0.3')
    axes.set_title(name, fontsize=10, loc='left')
    axes.set_xlabel('exp(entropy)', fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[['top', 'right']].set_visible(False)
  panels[0].set_ylabel('held-out accuracy, sampled', fontsize=9)
  figure.savefig(out, format='png', dpi=100)
