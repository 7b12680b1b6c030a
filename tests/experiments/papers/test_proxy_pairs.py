"""Losses on pairs and token rewards in the proxy, from lines made by hand."""

import pytest

from experiments.papers.proxy import (
  excerpt,
  pair_tables,
  pairs,
  sweep,
  token_tables,
)


def line(method, seed, gold, kl, **more):
  """The line of a run."""
  setting = next(
    one
    for one in sweep.get_sweep()
    if one['seed'] == seed and one['method'] == method
  )
  course = {'gold': gold, 'kl': kl, 'learned': [0.5] * len(gold)}
  return {'setting': setting, 'course': course, 'trained': 2000, **more}


def test_five_readings():
  """30,000 rows of 3,000 pairs, 50 an iteration; the last weights are kept."""
  for one in pairs.settings():
    assert one['iterations'] * 50 == 5 * one['task.num_train']
    assert pairs.steps(one)[-1] == one['iterations']
    assert sweep.table_of({'setting': one}) == 'pairs'


def test_differences_are_paired_with_dpo():
  """Of the rule at the end."""
  rows = [
    *(line('dpo', s, [0.1, 0.3, 0.1], [0, 2, 9], margin=9.0) for s in (30, 31)),
    *(line('rpo', s, [0.1, 0.2, 0.3], [0, 1, 3], margin=5.0) for s in (30, 31)),
  ]
  header, dpo, rpo = pair_tables.courses(rows)
  cells = dict(zip(header, rpo, strict=True))
  assert cells['to DPO'] == '+0.200'
  assert (cells['largest rule'], cells['tokens']) == ('0.300', '2k')
  assert (cells['learned'], cells['margin']) == ('0.50', '+5.0')
  assert dict(zip(header, dpo, strict=True))['KL there'] == '2.0'
  (one,) = pair_tables.seen(rows)['rpo']
  assert (one.verdict, one.seeds) == ('seen', 2)


def test_fall_of_dpo_is_from_the_first_reading():
  """That is the second checkpoint, behind the untrained policy."""
  course = [0.1, 0.2, 0.4, *[0.0] * 7, 0.3]
  rows = [line('dpo', seed, course, course) for seed in (30, 31)]
  found = pair_tables.falls(rows)
  assert found.found.effect == pytest.approx(-0.1)
  assert pair_tables.claims(rows)[1][0] == 'dpo'


def test_token_rewards_are_beside_ppo_of_their_seeds():
  """PPO of other seeds is left out."""
  rows = [
    *(line('ppo', seed, [0.0, 0.1, 0.2], [0, 1, 2]) for seed in (30, 31, 35)),
    *(line('rto', seed, [0.0, 0.2, 0.3], [0, 1, 2]) for seed in (30, 31)),
    *(line('r_to_q', seed, [0.0, 0.0, 0.1], [0, 1, 2]) for seed in (30, 31)),
  ]
  header, ppo, rto, _ = token_tables.table(rows)
  assert ppo[header.index('seeds')] == '2'
  assert rto[header.index('end to PPO')] == '+0.100'
  found = token_tables.seen(rows)
  assert found['rto'][0].verdict == 'seen'
  assert found['r_to_q'][0].verdict == 'lower'  # nothing is claimed of it


def test_a_line_of_pairs_has_margins_and_tokens():
  """From 1 in the first iteration to 5 in the mean of the last ten."""
  rows = [
    {
      'preference/logp_win': -3.0,
      'preference/logp_lose': -4.0 if i == 0 else -9.0,
      'batch/trained_tokens': 100.0,
    }
    for i in range(11)
  ]
  row = {'setting': {}, 'seconds': 1.0}
  found = excerpt.line_of_pairs(row, rows, {'gold': [0.1]})
  assert (found['margin'], found['trained']) == (5.0, 1100)
  assert found['course'] == {'gold': [0.1]}
  # Some losses have no pairs.
  alone = [{'batch/trained_tokens': 100.0}]
  assert 'margin' not in excerpt.line_of_pairs(row, alone, {})
