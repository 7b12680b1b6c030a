"""The tables of the world proxy from lines made by hand."""

import math

import numpy as np
import pytest

from experiments.papers.proxy import best_of_n, excerpt, sweep, tables


def run(name, seed, gold, kl):
  """The line of a run of an arm."""
  setting = next(
    one
    for one in sweep.get_sweep()
    if one['seed'] == seed
    and sweep.table_of({'setting': one}) in ('first', 'again')
    and sweep.arm(one) == name
  )
  learned = [0.5] * len(gold)
  return {
    'setting': setting,
    'course': {'gold': gold, 'kl': kl, 'learned': learned},
  }


def test_every_run_is_of_one_arm():
  """A seed has every arm once, and the models of its own and the next seeds."""
  first = [one for one in sweep.get_sweep() if one['seed'] == 11]
  assert [sweep.arm(one) for one in first] == list(sweep.ARMS)
  three = next(one for one in first if one['method'] == 'rm_ensemble')
  paths = [text.split("'")[1] for text in three['add']]
  assert paths == [f'runs/proxy_rm_{number}' for number in (11, 12, 13)]


def test_best_of_two_by_hand():
  """Pairs of three samples: the third wins twice, the second once."""
  gold, learned = np.array([5.0, 1.0, 4.0]), np.array([0.3, 0.1, 0.2])
  # In the order of learned gold is 1, 4, 5.
  found = best_of_n.expected_best(gold, learned, 2)
  assert found == pytest.approx((4.0 + 2 * 5.0) / 3)
  one = best_of_n.expected_best(gold, learned, 1)
  assert one == pytest.approx(gold.mean())


def test_divergence_of_best_of_n():
  """None for one sample; log 4 - 3/4 for four."""
  assert tables.divergence(1) == 0.0
  assert tables.divergence(4) == pytest.approx(math.log(4) - 0.75)


def test_score_at_a_divergence():
  """Between the windows; None before the first and after the last."""
  assert tables.at(2.0, [1.0, 3.0], [0.2, 0.4]) == pytest.approx(0.3)
  assert tables.at(0.5, [1.0, 3.0], [0.2, 0.4]) is None
  assert tables.at(4.0, [1.0, 3.0], [0.2, 0.4]) is None


def test_fall_is_from_the_largest_of_each_run():
  """Falls of -0.2 and -0.1, at divergences of 2 and 3."""
  rows = [
    run(sweep.NAIVE, 10, [0.1, 0.4, 0.2], [1.0, 2.0, 5.0]),
    run(sweep.NAIVE, 11, [0.1, 0.2, 0.1], [1.0, 3.0, 6.0]),
  ]
  header, row = tables.courses(rows)
  cells = dict(zip(header, row, strict=False))
  assert (cells['largest rule'], cells['KL there']) == ('0.300', '2.5')
  assert (cells['last rule'], cells['KL']) == ('0.150', '5.5')
  assert cells['fall'] == '-0.150'


def test_a_line_has_windows():
  """Means of ten iterations; the divergence is that of whole responses."""
  rows = [
    {
      'reward/outcome': float(i),
      'reward/a': 1.0,
      'reward/b': 2.0,
      'policy/kl_ref': 0.5,
      'rollout/length': 4.0,
    }
    for i in range(20)
  ]
  found = excerpt.line({'setting': {}, 'seconds': 1.0}, rows)
  assert found['course'] == {
    'gold': [4.5, 14.5],
    'kl': [2.0, 2.0],
    'learned': [1.5, 1.5],
  }
