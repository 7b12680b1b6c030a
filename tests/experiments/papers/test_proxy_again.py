"""Signed ranks, fitted curves and their tables in the proxy, by hand."""

import math

import numpy as np
import pytest

from experiments.papers.proxy import (
  again_tables,
  figures,
  fits,
  signed_ranks,
  sweep,
)


def test_signed_ranks_of_six_by_hand():
  """All above 0: 2 of 64 signs; the interval is that of the 21 means."""
  found = signed_ranks.one_sample(np.array([1.0, 2, 3, 4, 5, 60]))
  assert found.p == pytest.approx(2 / 64)
  assert (found.low, found.high) == (1.0, 60.0)
  assert found.effect == 3.5  # the eleventh; the mean is 12.5


def test_signed_ranks_of_ten():
  """-1 is below eight of nine: P(rank sum <= 1) twice; k is 9 of 55 means."""
  change_S = np.array([-1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  found = signed_ranks.one_sample(change_S)
  assert found.p == pytest.approx(2 * 2 / 1024)
  means = sorted(
    (x + y) / 2 for i, x in enumerate(change_S) for y in change_S[i:]
  )
  assert (found.low, found.high) == (means[8], means[-9])


def test_five_seeds_have_no_interval():
  """With five seeds, two of 32 signs are 6%."""
  found = signed_ranks.one_sample(np.arange(1.0, 6.0))
  assert found.effect == 3.0
  assert math.isnan(found.low) and math.isnan(found.p)


def test_fits_find_their_own_curves():
  """a 0.3 and b 0.2, from 0.1: maxima at log d = 1/2 and at d = 3/4."""
  d = np.linspace(0.3, 4.0, 20)
  gold = 0.1 + d * (0.3 - 0.2 * np.log(d))
  found = fits.reinforcement(d**2, gold, 0.1)
  assert (found.a, found.b) == pytest.approx((0.3, 0.2))
  assert found.r2 == pytest.approx(1.0)
  assert found.peak_kl == pytest.approx(math.e)
  found = fits.best_of_n(d**2, 0.1 + d * (0.3 - 0.2 * d), 0.1)
  assert (found.a, found.b, found.peak_kl) == pytest.approx((0.3, 0.2, 0.5625))
  rising = fits.reinforcement(d**2, 0.1 + d, 0.1)
  assert rising.a == pytest.approx(1.0)


def test_a_curve_that_never_falls_has_no_maximum():
  """b below 0."""
  d = np.linspace(0.3, 4.0, 20)
  gold = d * (0.3 + 0.2 * np.log(d))
  assert math.isinf(fits.reinforcement(d**2, gold, 0.0).peak_kl)


def lines(last, slope):
  """Ten runs: windows up to PEAK rise to 0.3, the last one is seed by seed."""
  rise = np.linspace(0.1, 0.3, sweep.PEAK + 1)
  return {
    seed: {
      'course': {
        'gold': [*rise, last + slope * i],
        'kl': [*range(1, len(rise) + 2)],
        'learned': [0.5] * (len(rise) + 1),
      }
    }
    for i, seed in enumerate(sweep.FRESH)
  }


ARMS = {sweep.NAIVE: lines(0.1, 0.01), sweep.PPO: lines(0.3, 0.012)}


def test_effects_by_hand():
  """NAIVE falls to 0.1 ... 0.19; PPO is 0.2 ... 0.218 above it at the end."""
  found, seeds = again_tables.effects(ARMS)
  assert seeds == {sweep.NAIVE: 10, sweep.PPO: 10}
  assert found[sweep.NAIVE].effect == pytest.approx(-0.155)
  assert found[sweep.PPO].effect == pytest.approx(0.209)
  assert found[sweep.PPO].p == pytest.approx(2 / 1024)
  assert again_tables.effects({}) == ({}, {})


def test_differences_are_of_shared_seeds():
  """The first six, of which PPO is 0.2 ... 0.21 above GRPO."""
  less = dict(list(ARMS[sweep.PPO].items())[:6])
  arms = {**ARMS, sweep.PPO: less}
  assert again_tables.effects(arms)[1] == {sweep.NAIVE: 10, sweep.PPO: 6}
  header, naive, ppo = again_tables.table(arms)
  assert [row[header.index('seeds')] for row in (naive, ppo)] == ['10', '6']
  assert naive[header.index('end to GRPO')] == ''
  assert ppo[header.index('end to GRPO')] == '+0.205'
  assert naive[header.index('fall')] == '10'
  assert ppo[header.index('fall')] == '0'  # 0.3 is not a fall


def test_figure_is_written(tmp_path):
  """A PNG of the arms of AGAIN and of losses on pairs."""
  setting = {
    'again': {'method': 'grpo', 'seed': 30},
    'pairs': {'method': 'dpo', 'seed': 30},
  }
  rows = [{'setting': one, **ARMS[sweep.NAIVE][30]} for one in setting.values()]
  out = tmp_path / 'curves.png'
  figures.draw(rows, 0.1, str(out))
  assert out.read_bytes().startswith(b'\x89PNG')
