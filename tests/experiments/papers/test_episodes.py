"""Tables of the episodes."""

import dataclasses

import pytest

from experiments.papers.episodes import acting, excerpt, sweep, tables
from experiments.papers.worlds import influences, landed, where


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


def test_what_was_seen_of_a_method(monkeypatch):
  """The verdict follows the sign of a claim; what it is against is named."""
  runs = {
    'a': lines('a', 'x', (5.0, 5.1, 4.9)),
    'b': lines('b', 'y', (3.0, 3.0, 3.1)),
  }
  more = sweep.Claim('P', 'more', ('a', 'x'), ('b', 'y'), 'm')
  less = dataclasses.replace(more, text='less', sign=-1)
  number = dataclasses.replace(more, text='reached', other=4.0, sign=0)
  monkeypatch.setattr(sweep, 'CLAIMS', (more, less, number))
  monkeypatch.setattr(tables, 'by_world', lambda lines: lines)
  found = tables.seen(runs)
  assert set(found) == {'x'}
  assert [(one.claim, one.verdict) for one in found['x']] == [
    ('more (against y in b)', 'seen'),
    ('less (against y in b)', 'contrary'),
    ('reached (against 4.0)', 'seen'),
  ]
  assert {(one.world, one.metric, one.seeds) for one in found['x']} == {
    ('a', 'm', 3)
  }


# In the order of the claims, of the committed results.
VERDICTS = {
  'aspo': ('not seen', 'not seen'),
  'hiper': (
    *('contrary',) * 10,
    *(('not seen',) * 5 + ('seen',) * 2 + ('not seen',)),
    *('contrary', 'contrary', 'contrary', 'not seen', 'contrary'),
    *('not seen', 'not seen'),
  ),
  'oni': ('seen',) * 3 + ('not seen',) * 2,
  'ppo': (
    *(('not seen',) * 2 + ('contrary',) * 2 + ('seen',) * 2),
    *('seen',) * 4,  # with rewards of turns
    *(
      ('not seen',) * 2
      + ('seen',)
      + ('not seen',) * 11
      + ('contrary',) * 2
      + ('not seen',)
      + ('contrary',)
    ),
    *('seen',) * 3,  # in rooms, of the games that were trained on
    *('not seen',) * 3,
    *('seen',) * 2,  # with 192 games
  ),
  'rlprompt': ('seen', 'seen'),
  'router_r1': (
    *('not seen', 'contrary'),
    *('not seen', 'not seen', 'not seen', 'seen'),
    *('not seen', 'not seen', 'not seen', 'contrary'),
    *('contrary', 'not seen'),
  ),
  'salt': ('not seen', 'not seen'),
  'turn_ppo': (
    *('not seen', 'seen', 'not seen', 'contrary', 'contrary', 'contrary'),
    *('seen', 'contrary', 'contrary', 'contrary', 'seen', 'not seen'),
    *('seen', 'not seen', 'seen', 'not seen', 'seen', 'not seen', 'not seen'),
  ),
}


def test_verdicts_stand_on_the_page_of_all_methods():
  """Each of a method's claims has a line there."""
  found = landed.judged_elsewhere()
  assert VERDICTS == {
    name: tuple(one.verdict for one in found[name]) for name in VERDICTS
  }


def test_a_metric_per_another():
  assert tables.number({'late': 3.0, 'called': 0.6}, 'late per called') == 5.0
  assert tables.number({'late': 3.0}, 'late') == 3.0


def test_components_are_averaged():
  """Over all iterations, and over the last tenth of twenty."""
  rows = [{'reward/calls': float(n), 'loss': 1.0} for n in range(20)]
  assert excerpt.components(rows) == {'mean/calls': 9.5, 'final/calls': 18.5}


def test_votes_of_samples_are_kept_where_they_are_counted():
  """Whatever their number; components of samples have no other name."""
  row = {'evaluation/sample_reward/outcome': 0.25, 'evaluation/length': 3.0}
  assert excerpt.evaluated(row) == {'held_out/outcome': 0.25}
  row['evaluation/majority_at_8'] = 0.5
  assert excerpt.evaluated(row) == {
    'held_out/outcome': 0.25,
    'held_out/majority': 0.5,
  }


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


@pytest.mark.parametrize('world', acting.WORLDS)
def test_influence_of_methods_is_known(world):
  """The methods of the world, and each method against its baseline."""
  names = acting.WORLDS[world]
  assert set(names) <= set(sweep.WORLDS[world].methods)
  found = influences.of_world(world, tables.INFLUENCE)
  assert found.keys() == set(names)
  for name, line in found.items():
    assert line['against'] == where.baseline_of(name)
