"""Tables of the arms with ten fresh seeds: five claims, and fitted curves."""

from collections.abc import Mapping

import numpy as np

from experiments.papers.proxy import fits, signed_ranks, sweep
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

# Row of the table -> seed -> line of a run.
Arms = Mapping[str, Mapping[int, dict]]
Cells = list[list[str]]


def effects(
  arms: Arms,
) -> tuple[dict[str, intervals.Comparison], dict[str, int]]:
  """(row -> its claim's effect, p adjusted for the claims; row -> seeds).

  Of NAIVE the rule's change from the window sweep.PEAK to the end; of the
  others the rule at the end less NAIVE's, over the seeds that both have.
  """
  if sweep.NAIVE not in arms:
    return {}, {}
  last = {
    name: {seed: row['course']['gold'][-1] for seed, row in seeds.items()}
    for name, seeds in arms.items()
  }
  changes = {sweep.NAIVE: _change(arms[sweep.NAIVE])}
  for name, seeds in last.items():
    base = last[sweep.NAIVE]
    shared = sorted(set(seeds) & set(base))
    if name != sweep.NAIVE and shared:
      changes[name] = np.array([seeds[s] - base[s] for s in shared])
  found = {n: signed_ranks.one_sample(x) for n, x in changes.items()}
  p_N = intervals.adjusted([one.p for one in found.values()])
  return {
    name: one._replace(p=p)
    for (name, one), p in zip(found.items(), p_N, strict=True)
  }, {name: len(x) for name, x in changes.items()}


def table(arms: Arms) -> Cells:
  """Means over seeds; changes and differences as `signed_ranks` has them."""
  claimed, _ = effects(arms)
  header = ['run', 'seeds', 'rule at 31 to 40', 'KL', 'rule at the end', 'KL']
  header += ['learned', 'change', '95%', 'fall', 'end to GRPO', '95% paired']
  found = [[*header, cells_lib.ADJUSTED]]
  for name, seeds in arms.items():
    rows = [row['course'] for row in seeds.values()]

    def mean(key, window, form, rows=rows):
      return format(np.mean([row[key][window] for row in rows]), form)

    change = _change(seeds)
    ranked = signed_ranks.one_sample(change)
    effect, interval, p = cells_lib.comparison_text(claimed.get(name))
    if name == sweep.NAIVE:  # its claim is on the change
      effect, interval = '', ''
    found.append(
      [
        *(name, str(len(seeds))),
        *(mean('gold', sweep.PEAK, '.3f'), mean('kl', sweep.PEAK, '.1f')),
        *(mean('gold', -1, '.3f'), mean('kl', -1, '.1f')),
        mean('learned', -1, '.2f'),
        *cells_lib.comparison_text(ranked)[:2],
        str((change < 0).sum()),
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


def _change(seeds):
  gold = [row['course']['gold'] for row in seeds.values()]
  return np.array([one[-1] - one[sweep.PEAK] for one in gold])
