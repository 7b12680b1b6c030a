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


def rows_of(setting):
  """Rows that a run trains on."""
  groups, size = 16, setting.get('rollout.group_size', 8)
  if setting['method'] in pairs.OFFLINE:
    groups, size = 50, 2  # a third one of kto is the reference point
  twice = 1 + (setting['method'] in pairs.AGAINST)
  return setting['iterations'] * groups * size * twice


def test_rows_are_about_equal():
  """30,000 of data, five readings of 3,000 pairs; 30,720 samples."""
  for one in sweep.get_sweep():
    if one['method'] in pairs.METHODS:
      data = one['method'] in pairs.OFFLINE
      assert rows_of(one) == (30000 if data else 30720)
      assert pairs.steps(one)[-1] == one['iterations']


def test_learned_rewards_are_of_samples_alone():
  """The model of the seed, under its own name."""
  for one in sweep.get_sweep():
    if one['method'] in pairs.METHODS:
      own = f"reward_models=RewardModel(path='runs/proxy_rm_{one['seed']}'"
      added = one.get('add', [])
      assert bool(added) == (one['method'] in pairs.ONLINE)
      assert all(text.startswith(own) for text in added)


def test_differences_are_paired_with_dpo():
  """Differences of the rule at the end; of IPO's margins, 4 less."""
  rows = [
    *(line('dpo', s, [0.1, 0.3, 0.1], [0, 2, 9], margin=9.0) for s in (33, 34)),
    *(line('rpo', s, [0.1, 0.2, 0.3], [0, 1, 3], margin=5.0) for s in (33, 34)),
    *(line('ipo', s, [0.1, 0.2, 0.1], [0, 1, 3], margin=5.0) for s in (33, 34)),
  ]
  header, dpo, _, rpo = pair_tables.courses(rows)
  cells = dict(zip(header, rpo, strict=True))
  assert cells['to DPO'] == '+0.200'
  assert (cells['largest rule'], cells['tokens']) == ('0.300', '2k')
  assert dict(zip(header, dpo, strict=True))['KL there'] == '2.0'
  found = pair_tables.seen(rows)
  assert found['ipo'][0].comparison.effect == pytest.approx(-4.0)
  assert found['ipo'][0].metric == 'margin'
  assert {one.verdict for (one,) in found.values()} == {'seen'}


def test_fall_of_dpo_is_from_the_first_reading():
  """That is the second checkpoint, after the untrained policy."""
  course = [0.1, 0.2, 0.4, *[0.0] * 7, 0.3]
  rows = [line('dpo', seed, course, course) for seed in (33, 34)]
  found = pair_tables.falls(rows)
  assert found.comparison.effect == pytest.approx(-0.1)
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
  # KTO has no pairs.
  alone = [{'batch/trained_tokens': 100.0}]
  assert 'margin' not in excerpt.line_of_pairs(row, alone, {})
