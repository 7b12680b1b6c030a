"""Tables of the arms with ten fresh seeds: five claims, and fitted curves."""

from collections.abc import Mapping

import numpy as np

from experiments.papers.proxy import fits, signed_ranks, sweep
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

# Row of the table -> seed -> line of a run.
Arms = Mapping[str, Mapping[int, dict]]
Cells = list[list[str]]


def effects(arms: Arms) -> tuple[dict[str, intervals.Comparison], int]:
  """(row -> its claim's effect, p adjusted for the claims; the seeds).

  Of NAIVE the rule's change from the window sweep.PEAK to the end; of the
  others the rule at the end less NAIVE's. Over seeds that all arms have.
  """
  seeds = _common(arms)
  if not seeds:
    return {}, 0
  gold = lambda name, window: {
    seed: arms[name][seed]['course']['gold'][window] for seed in seeds
  }
  last = {name: gold(name, -1) for name in arms}
  naive = {sweep.NAIVE: _change(arms[sweep.NAIVE], seeds)}
  found = naive | signed_ranks.against(last, sweep.NAIVE)
  p_N = intervals.adjusted([one.p for one in found.values()])
  return {
    name: one._replace(p=p)
    for (name, one), p in zip(found.items(), p_N, strict=True)
  }, len(seeds)


def table(arms: Arms) -> Cells:
  """Means over seeds; changes and differences as `signed_ranks` has them."""
  claimed, _ = effects(arms)
  seeds = _common(arms)
  header = ['run', 'seeds', 'rule at 31 to 40', 'KL', 'rule at the end', 'KL']
  header += ['learned', 'change', '95%', 'fall', 'end to GRPO', '95% paired']
  found = [[*header, cells_lib.ADJUSTED]]
  for name in arms if seeds else ():
    rows = [arms[name][seed]['course'] for seed in seeds]
    mean = lambda key, window, form, rows=rows: format(
      np.mean([row[key][window] for row in rows]), form
    )
    change = _change(arms[name], seeds)
    effect, interval, p = cells_lib.comparison_text(claimed[name])
    if name == sweep.NAIVE:  # its claim is on the change
      effect, interval = '', ''
    falls = sum(row['gold'][-1] < row['gold'][sweep.PEAK] for row in rows)
    found.append(
      [
        *(name, str(len(seeds))),
        *(mean('gold', sweep.PEAK, '.3f'), mean('kl', sweep.PEAK, '.1f')),
        *(mean('gold', -1, '.3f'), mean('kl', -1, '.1f')),
        mean('learned', -1, '.2f'),
        *cells_lib.comparison_text(change)[:2],
        str(falls),
        *(effect, interval, p),
      ]
    )
  return found


def fitted(arms: Arms, start: float) -> Cells:
  """Means over seeds of fits of each run; start: the untrained policy's rule.

  `maximum within` counts runs whose fitted curve has its maximum at a
  divergence that the run reached; `KL there` is the median of those.
  """
  header = ['run', 'seeds', 'a', '95%', 'b', '95%', 'R^2', 'R^2 of d (a - b d)']
  found = [[*header, 'maximum within', 'KL there']]
  for name, seeds in arms.items():
    courses = [row['course'] for row in seeds.values()]
    ours, other = (
      [form(one['kl'], one['gold'], start) for one in courses]
      for form in (fits.reinforcement, fits.best_of_n)
    )
    row = [name, str(len(courses))]
    for field in ('a', 'b'):
      x = np.array([getattr(one, field) for one in ours])
      low_high = intervals.mean_interval(x)
      row += [f'{x.mean():.3f}', cells_lib.interval_text(*low_high)]
    row += [f'{np.mean([one.r2 for one in x]):.2f}' for x in (ours, other)]
    peaks = [
      one.peak_kl
      for one, course in zip(ours, courses, strict=True)
      if one.peak_kl <= max(course['kl'])
    ]
    median = f'{np.median(peaks):.1f}' if peaks else ''
    found.append([*row, str(len(peaks)), median])
  return found


def _common(arms):
  if sweep.NAIVE not in arms:
    return []
  return sorted(set.intersection(*(set(seeds) for seeds in arms.values())))


def _change(lines, seeds):
  gold = [lines[seed]['course']['gold'] for seed in seeds]
  return signed_ranks.one_sample(
    np.array([one[-1] - one[sweep.PEAK] for one in gold])
  )
