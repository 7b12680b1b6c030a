"""The rule's score against the divergence, with fitted curves.

  python -m experiments.papers.proxy.figures
    --out=experiments/papers/proxy/curves.png

Left the arms with ten seeds: windows of all runs, and the curve of the means of
their fits as far as half of the runs go. Right losses on pairs: means over
seeds at their checkpoints.
"""

from collections.abc import Mapping, Sequence
import pathlib

from absl import flags
import numpy as np

from experiments import plot
from experiments.flags import configuration
from experiments.papers.proxy import fits, pair_tables, tables
from experiments.reports import figures
from rl_jax.records import metrics

_OUT = flags.DEFINE_string('out', None, 'PNG to write.', required=True)
RESULTS = pathlib.Path(__file__).parent / 'results.jsonl'
LOWEST = -0.6  # of the rule; few windows are below
Curves = Sequence[tables.Curve]


def draw(rows: Sequence[tables.Line], start: float, out: str) -> None:
  """Writes the figure; start: the untrained policy's rule."""
  figure = figures.new_figure(9.0, 4.2)
  left, right = figure.subplots(1, 2, sharey=True)
  arms = {
    name: [tables.curve(line) for line in seeds.values()]
    for name, seeds in tables.by_arm(rows, 'again').items()
  }
  for color, (name, curves) in zip(plot.COLORS, arms.items(), strict=False):
    _draw_fit(left, color, name, curves, start)
  of_pairs = {
    name: [tables.curve(line) for line in seeds.values()]
    for name, seeds in pair_tables.by_method(rows).items()
  }
  _draw_means(right, of_pairs)
  left.set_ylabel('score of the rule', fontsize=9)
  left.set_ylim(bottom=LOWEST)
  for axes, title in ((left, 'policy gradients'), (right, 'losses on pairs')):
    axes.axhline(start, color='0.8', linewidth=0.8, zorder=0)
    axes.set_title(title, fontsize=10, loc='left')
    axes.set_xlabel('square root of the KL, nats a response', fontsize=9)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, loc='lower left', frameon=False)
    axes.spines[['top', 'right']].set_visible(False)
  figure.savefig(out, format='png', dpi=100)


def _draw_fit(axes, color: str, name: str, curves: Curves, start: float):
  for kl, gold in curves:
    axes.plot(np.sqrt(kl), gold, '.', color=color, markersize=1.5, alpha=0.5)
  found = [fits.reinforcement(kl, gold, start) for kl, gold in curves]
  a, b = (np.mean([getattr(one, field) for one in found]) for field in 'ab')
  d = np.linspace(0.1, np.median([max(kl) for kl, _ in curves]) ** 0.5)
  axes.plot(d, start + d * (a - b * np.log(d)), color=color, label=name)


def _draw_means(axes, found: Mapping[str, Curves]) -> None:
  for number, (name, curves) in enumerate(found.items()):
    kl, gold = (np.mean(x, 0) for x in zip(*curves, strict=True))
    style = '-' if number < len(plot.COLORS) else '--'
    color = plot.COLORS[number % len(plot.COLORS)]
    axes.plot(
      np.sqrt(kl),
      gold,
      style,
      color=color,
      label=name,
      marker='.',
      markersize=4,
    )


def main(argv):
  """Reads the committed results and writes."""
  del argv
  draw(metrics.read_jsonl(str(RESULTS)), tables.start(), _OUT.value)
  print(_OUT.value)


if __name__ == '__main__':
  configuration.run(main)
