"""Tables of the episodes."""

import dataclasses

import pytest

from experiments.papers.episodes import excerpt, sweep, tables


def lines(world, method, numbers):
  return [
    {'setting': {'method': method, 'seed': seed}, 'last': {'m': x}}
    for seed, x in enumerate(numbers)
  ]


def test_rows_by_hand(monkeypatch):
  """Differences 1, 2, 3: mean 2, half width 4.303 / sqrt(3); against 5.0: 0."""
  runs = {
    'a': lines('a', 'x', (5.0, 5.0, 5.0)) + lines('a', 'y', (4.0, 3.0, 2.0)),
  }
  claim = sweep.Claim('P', 'more', ('a', 'x'), ('a', 'y'), 'm')
  same = dataclasses.replace(claim, other=5.0, sign=0)
  less = dataclasses.replace(claim, one=('a', 'y'), other=('a', 'x'))
  monkeypatch.setattr(sweep, 'CLAIMS', (claim, same, less))
  _, first, second, third = tables.rows(runs)
  assert first[2:] == [
    *('x in a; against y', 'm', '3', '5.000', '3.000', '+2.000'),
    *('[-0.484, +4.484]', '0.111', 'not seen'),
  ]
  assert second[-4:] == ['+0.000', '[+0.000, +0.000]', '1.000', 'seen']
  assert third[-1] == 'not seen' and third[7] == '-2.000'


def test_components_are_averaged():
  """Over all iterations, and over the last tenth of twenty."""
  rows = [{'reward/calls': float(n), 'loss': 1.0} for n in range(20)]
  assert excerpt.components(rows) == {'mean/calls': 9.5, 'final/calls': 18.5}


def test_every_line_of_the_sweep_has_one_world():
  for name, world in sweep.WORLDS.items():
    for setting in world.settings():
      assert sweep.world_of({'setting': setting}) == name
  assert not sweep.world_of({'setting': {'method': 'grpo'}})


@pytest.mark.parametrize('claim', sweep.CLAIMS)
def test_claims_are_about_runs_of_the_sweep(claim):
  for world, method in (claim.one, claim.other)[
    : 1 + (type(claim.other) is tuple)
  ]:
    assert method in sweep.WORLDS[world].methods
