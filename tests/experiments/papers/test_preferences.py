"""The tables of preference methods from lines made by hand."""

from experiments.papers.preferences import sweep, tables
from experiments.papers.worlds import landed


def run(method, seed, greedy, chosen):
  """The line of a run."""
  last = {'greedy': greedy, 'pairs': 0.9, 'chosen': chosen, 'rejected': -6.0}
  return {
    'setting': {'method': method, 'seed': seed},
    'last': last | {'greedy before': 0.2},
    'start': {'pairs': 0.8, 'chosen': -3.0, 'rejected': -5.0},
  }


ROWS = [
  *(run('dpo', seed, 0.2 + seed / 100, -4.0) for seed in range(3)),
  *(run('dpop', seed, 0.3 + seed / 100, -3.0 + seed / 10) for seed in range(3)),
  *(run('kto', seed, 0.2 + seed / 100, -4.0) for seed in range(3)),
]


def test_differences_are_paired_with_dpo():
  """The start has no seeds; dpop is 0.1 above in every seed."""
  header, start, dpo, dpop = tables.methods(ROWS, ('dpo', 'dpop'))
  assert start[: len(tables.COLUMNS) + 2] == [
    *('the start', '', '0.800', '+2.00', '-3.00', '-5.00', '0.200')
  ]
  assert dpo[header.index('to DPO')] == ''
  assert dpop[header.index('to DPO')] == '+0.100'
  assert dpop[header.index('margin')] == '+3.10'


def test_verdicts():
  """The chosen responses of dpop stay likely; kto is as good as DPO."""
  found = tables.seen(ROWS)
  assert set(found) == {'dpop', 'kto'}
  assert found['dpop'][0].metric == 'chosen'
  assert {one.verdict for (one,) in found.values()} == {'seen'}
  assert found['dpop'][0].comparison.effect > 1.0


def test_every_run_sees_as_many_responses():
  """128 an iteration, an opponent's among them; kto has one more a pair."""
  for one in sweep.get_sweep():
    if one['method'] in sweep.ONLINE:
      rows = one['rollout.num_prompts'] * one['rollout.group_size']
      assert rows * (1 + (one['method'] in sweep.AGAINST)) == 128


def test_verdicts_stand_on_the_page_of_all_methods():
  """The page has the committed results of both papers."""
  found = landed.judged_elsewhere()
  assert [one.world for one in found['orpo']] == ['preferences']
  assert [one.world for one in found['par']] == ['proxy']


def test_wrong_labels_have_a_table_of_their_own():
  """DPO on noisy pairs is the baseline there, and enters no other table."""
  noisy = {'task.flip_rate': sweep.FLIP_RATE}
  rows = [
    *ROWS,
    *(run('cdpo', seed, 0.2, -4.0) for seed in range(3)),
  ]
  for method, pairs in (('dpo', 0.5), ('robust_dpo', 0.7)):
    for seed in range(3):
      one = run(method, seed, 0.1, -4.0)
      one['setting'] |= noisy
      one['last']['pairs'] = pairs + seed / 100
      rows.append(one)
  header, _, dpo, robust = tables.all_tables(rows)['noisy']
  assert dpo[header.index('pair accuracy')] == '0.510'
  assert robust[header.index('pairs to DPO')] == '+0.200'
  header, _, dpo, cdpo = tables.all_tables(rows)['more']
  assert dpo[header.index('pair accuracy')] == '0.900'
  assert cdpo[header.index('to DPO')] == '-0.010'
  found = tables.seen(rows)
  assert [one.world for one in found['robust_dpo']] == [
    'preferences, wrong labels'
  ]
  assert found['robust_dpo'][0].verdict == 'seen'


def test_noisy_runs_read_turned_labels():
  """Only runs of NOISY do; methods that correct for them are given the
  share.
  """
  for one in sweep.get_sweep():
    noisy = sweep.table_of({'setting': one}) == 'noisy'
    assert (one.get('task.flip_rate', 0.0) == sweep.FLIP_RATE) == noisy
    told = [key for key in one if '.link.' in key]
    assert len(told) == (noisy and one['method'] in ('cdpo', 'robust_dpo'))
