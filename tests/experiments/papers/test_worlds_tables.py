"""Tables of the worlds: equal tokens, choice of rates, ranks, verdicts."""

import dataclasses

import numpy as np
import pytest

from experiments.flags import configuration
from experiments.papers.worlds import (
  entropy,
  excerpt,
  influences,
  looped,
  looped_tables,
  profile,
  sweep,
  trials,
  where,
)
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import all_methods, intervals
from rl_jax.records import metrics

RESULTS = influences.FILE.parent / 'results.jsonl'


def made(method, seed, sampled, rate=None, world=sweep.MAIN):
  """A line of a run of two iterations."""
  rate = sweep.rates_of(world)[method] if rate is None else rate
  setting = {
    'config': world,
    'method': method,
    trials.RATE: rate,
    'seed': seed,
  }
  last = dict.fromkeys(worlds_tables.METRICS, sampled)
  course = {'tokens': [100, 300], 'reward': [0.2, 0.8], 'entropy': [1, 0.5]}
  return {'setting': setting, 'last': last, 'course': course}


def measured(cos, **pieces):
  """A line of influence.jsonl."""
  numbers = {'rows_changed': 0.0, 'groups_dropped': 0.0, 'selection': 0.0}
  numbers |= {'cos': cos, 'ratio': 1.0, 'against': 'ppo', 'acts': cos != 1.0}
  return numbers | {'pieces': pieces}


def test_area_by_hand(monkeypatch):
  """100 tokens at 0.2, then 0.8 up to the limit, also after the last one."""
  line = made('grpo', 0, 0.5)
  for tokens, expected in ((100, 0.2), (200, 0.5), (300, 0.6), (600, 0.7)):
    monkeypatch.setitem(sweep.TOKENS, sweep.MAIN, tokens)
    assert worlds_tables.area(line) == pytest.approx(expected)


def test_rates_are_of_the_tuning_seeds(monkeypatch):
  """The mean over both, of the last third; a failed run counts 0."""
  monkeypatch.setattr(sweep, 'TUNING_SEEDS', (100, 101))
  lines = [made('grpo', 0, 0.9)]
  for rate, rewards in ((1e-4, (0.4, 0.6)), (3e-4, (0.9, None))):
    for seed, reward in zip(sweep.TUNING_SEEDS, rewards, strict=True):
      line = made('grpo', seed, 0.0, rate)
      line['course']['reward'] = [0.0, 0.0, reward]
      lines.append(line | ({'failed': 'x'} if reward is None else {}))
  assert worlds_tables.rates(lines, sweep.MAIN) == {
    'grpo': {1e-4: 0.5, 3e-4: 0.45}
  }


@pytest.mark.parametrize('world', sweep.COMPARED)
def test_rates_of_the_trials_are_the_best(world):
  """The committed runs show it; no run of the leaderboard helped to choose."""
  methods = sweep.COMPARED[world].methods
  found = worlds_tables.rates(metrics.read_jsonl(RESULTS), world)
  assert set(found) == set(methods)
  best = {name: max(scores, key=scores.get) for name, scores in found.items()}
  assert best == {name: trial.rate for name, trial in methods.items()}


@pytest.mark.parametrize(
  'world', [name for name, of in looped.WORLDS.items() if of.tried]
)
def test_rates_of_looped_worlds_are_the_best(world):
  """The same of worlds with their own columns."""
  found = looped_tables.tuned(metrics.read_jsonl(RESULTS), world)
  best = {name: max(scores, key=scores.get) for name, scores in found.items()}
  assert best == looped.WORLDS[world].rates


@pytest.mark.parametrize(
  'world', [*sweep.COMPARED, *sweep.WORLDS, *looped.WORLDS]
)
def test_influence_of_every_method_is_known(world):
  """A row of a table cannot lack it; the baseline needs none."""
  known = influences.of_world(world)
  if world in looped.WORLDS:
    of = looped.WORLDS[world]
    methods = set(of.rates) - {of.baseline}
  else:
    methods = set(sweep.methods_of(world)) - {sweep.BASELINE}
  assert set(known) == methods
  for name, line in known.items():
    assert line['against'] == where.baseline_of(name)


def test_what_does_not_act_has_no_rank(monkeypatch):
  """Nor is it compared, however good it looks."""
  names = ('grpo', 'gspo', 'reinforce')
  acting = {'gspo': measured(1.0), 'reinforce': measured(0.9)}
  monkeypatch.setattr(influences, 'of_world', lambda world: acting)
  values = {'grpo': (0.5, 0.6), 'gspo': (0.9, 0.95), 'reinforce': (0.6, 0.71)}
  lines = [made(n, s, x) for n in names for s, x in enumerate(values[n])]
  lines.append(made('gspo', 0, 0.1, rate=7.0))  # another rate
  _, *rows = worlds_tables.leaderboard(lines, sweep.MAIN)
  found = [(row[0], row[1], row[5], row[6]) for row in rows]
  assert found == [
    ('1', 'reinforce', '0.655', '+0.105'),
    ('2', 'grpo', '0.550', ''),
    (influences.NIL, 'gspo', '0.925', ''),
  ]


@pytest.mark.parametrize(
  ('sign', 'effect', 'half', 'p', 'expected'),
  [
    (1, 0.05, 0.02, 0.01, 'seen'),
    (1, -0.05, 0.02, 0.01, 'contrary'),
    (-1, -0.05, 0.02, 0.01, 'seen'),
    (1, 0.05, 0.06, 0.2, 'not seen'),
    (0, -0.01, 0.01, 0.2, 'seen'),
    (0, -0.01, 0.03, 0.2, 'not seen'),
    (0, -0.05, 0.02, 0.01, 'contrary'),
    (0, 0.05, 0.02, 0.01, 'seen'),
    (None, 0.05, 0.02, 0.01, 'higher'),
    (None, -0.05, 0.02, 0.01, 'lower'),
    (None, -0.05, 0.06, 0.2, 'not separated'),
  ],
)
def test_verdicts(sign, effect, half, p, expected):
  found = intervals.Comparison(
    *map(np.float64, (effect, effect - half, effect + half, p))
  )
  assert worlds_tables.verdict(sign, found) == expected


def test_a_world_at_one_rate_is_ranked_by_samples(monkeypatch):
  """Best first, against GRPO; runs at another rate are left out, what does not
  act is last and is not compared."""
  acting = {
    'gspo': measured(0.5, **{'losses.0.GSPO': (0.9, 1.0)}),
    'gpg': measured(0.7, **{'losses.0.Reinforce': (0.9999, 1.0)}),
    'tis': measured(1.0),
  }
  monkeypatch.setattr(influences, 'of_world', lambda world: acting)
  monkeypatch.setattr(sweep, 'rates_of', lambda world: dict.fromkeys(values, 1))
  values = {'grpo': 0.6, 'gspo': 0.5, 'gpg': 0.9, 'tis': 0.99}
  lines = [
    made(name, seed, x, world=sweep.SURVEY)
    for name, x in values.items()
    for seed in range(2)
  ]
  lines.append(made('gspo', 2, 0.1, 7.0, sweep.SURVEY))
  runs = worlds_tables.compared(lines, sweep.SURVEY)
  _, *rows = worlds_tables.standing(runs, sweep.SURVEY)
  assert [row[:5] for row in rows] == [
    ['1', 'gpg', '2', '0.900', '+0.300'],
    ['2', 'grpo', '2', '0.600', ''],
    ['3', 'gspo', '2', '0.500', '-0.100'],
    [influences.NIL, 'tis', '2', '0.990', ''],
  ]
  assert rows[2][-4:] == ['ppo', '0.500', '1.00', 'GSPO 0.900 1.00']
  assert rows[0][-1] == f'Reinforce {influences.NIL}'
  assert rows[1][-4:] == [''] * 4


def test_claims_of_what_does_not_act_are_not_judged(monkeypatch):
  """However clear the difference; the others are not corrected for it."""
  acting = {'gpg': measured(0.5), 'opo': measured(0.6), 'sapo': measured(1.0)}
  monkeypatch.setattr(influences, 'of_world', lambda world: acting)
  gains = {'grpo': 0.0, 'gpg': 0.1, 'opo': 0.0, 'sapo': 0.2}
  lines = [
    made(n, s, 0.5 + gain + 0.01 * (s == 1) * (n != 'grpo'), world=sweep.SURVEY)
    for n, gain in gains.items()
    for s in range(3)
  ]
  found = worlds_tables.seen(lines, sweep.SURVEY)
  assert found['sapo'].verdict == influences.NIL
  assert found['sapo'].comparison.effect == pytest.approx(0.2 + 0.01 / 3)
  change = 0.1 + 0.01 * np.array([0, 1, 0])
  assert found['gpg'].verdict == 'seen'  # one of two
  assert found['gpg'].comparison.p == pytest.approx(
    2 * intervals.p_value(change)
  )


def test_later_runs_are_judged_apart():
  """With the GRPO of their own seeds."""
  of = sweep.LATER['later']

  def make(name, seed, x):
    return made(name, seed, x, world=sweep.SURVEY)

  lines = [make('grpo', s, 0.5) for s in range(2)]
  for seed in range(of.first, of.first + of.seeds):
    noise = 0.01 * (seed % 2)
    lines += [make('grpo', seed, 0.9), make('empg', seed, 0.8 + noise)]
  assert len(worlds_tables.compared(lines, sweep.SURVEY)) == 2
  assert len(worlds_tables.later(lines, sweep.SURVEY, 'later')) == 2 * of.seeds
  assert not worlds_tables.later(lines, sweep.SURVEY, 'last')
  tables = {sweep.table_of(line) for line in lines}
  assert tables == {sweep.SURVEY, f'{sweep.SURVEY} later'}
  found = worlds_tables.seen(lines, sweep.SURVEY)['empg']
  assert found.seeds == of.seeds and found.verdict == 'contrary'


def test_a_family_is_judged_on_its_further_seeds():
  """Each part has GRPO, and a correction for its own rows only."""
  of, noise = sweep.WORLDS[sweep.SURVEY], (0.0, 0.01, 0.02, 0.01, 0.0)
  gains = {'expert_iteration': (0.0, 0.1), 'gpg': (-0.2,), 'grpo': (0.0, 0.0)}
  lines = []
  for name, parts in gains.items():
    for part, gain in enumerate(parts):
      for i in range((of.seeds, of.further_seeds)[part]):
        sampled = 0.5 + gain + noise[i] * (name != 'grpo')
        seed = i + of.seeds * part
        lines.append(made(name, seed, sampled, world=sweep.SURVEY))
  first, further = worlds_tables.judged_together(lines, sweep.SURVEY)
  assert len(first) == 9 and len(further) == 10
  found = worlds_tables.seen(lines, sweep.SURVEY)
  assert found['gpg'].seeds == of.seeds and found['gpg'].verdict == 'contrary'
  judged = found['expert_iteration']
  assert judged.seeds == of.further_seeds and judged.verdict == 'higher'
  assert judged.comparison.effect == pytest.approx(0.108)
  change = 0.1 + np.array(noise)
  assert judged.comparison.p == pytest.approx(intervals.p_value(change))


def test_law_of_an_exact_course():
  """R = 1 - exp(H) gives a = b = R^2 = 1 and no error of prediction."""
  entropy = np.linspace(0.5, 0.1, 20)
  line = made('clip_cov', 0, 0.5)
  course = {'entropy': entropy, 'reward': 1 - np.exp(entropy)}
  line['course'] = {'tokens': range(20), **course}
  header, row = worlds_tables.law([line, made('gspo', 0, 0.5)], sweep.MAIN)
  found = dict(zip(header, row, strict=True))
  for name in ('a', 'b', 'R^2 exp(H)'):
    assert found[name].startswith('1.000 ')
  assert found['error exp(H)'].startswith('0.000 ')
  assert not found['error H'].startswith('0.000 ')


def test_early_share_of_the_fall_of_entropy():
  """Six of sixteen iterations are the first 36%: 0.6 of 0.75 nats."""
  entropies = [1.0, 0.8, 0.7, 0.6, 0.5, 0.4, *np.linspace(0.35, 0.25, 10)]
  line = {'course': {'entropy': entropies, 'reward': [0.0] * 16}}
  assert entropy.early(line) == pytest.approx(0.8)


def test_claims_on_entropy():
  """R is a line in H: exp(H) fits and predicts worse in every seed."""
  lines = []
  for shift in (0.0, 0.1, 0.2):
    h = np.geomspace(0.9 + shift, 0.1, 20)
    line = made('grpo', 0, 0.5)
    line['course'] = {'tokens': range(20), 'entropy': h, 'reward': 1 - h}
    lines.append(line)
  cells = ['+0.1', '[+0.05, +0.15]', 'seen']
  header, *rows = entropy.claims(lines, {'kl_cov': {'more entropy': cells}})
  assert header[-1] == 'verdict'
  assert [row[-1] for row in rows] == [
    *('confirmed', 'confirmed', 'confirmed'),
    *('contrary', 'contrary', 'contrary'),
    'seen',
  ]
  assert rows[-1][0] == 'kl_cov: more entropy'
  rising = [{**x, 'course': dict(x['course'])} for x in lines]
  for line in rising:
    line['course']['entropy'] = line['course']['entropy'][::-1]
  _, *rows = entropy.claims(rising, {})
  assert rows[0][-1] == 'contrary' and 'early' not in rows[1][0]


def test_every_method_has_its_claims_in_the_one_table():
  """Those without a verdict have the headline and the world, or the reason."""
  found = {
    name: dict(zip(all_methods.HEADER[1:], cells, strict=True))
    for name, cells in all_methods.table().items()
  }
  assert list(found) == configuration.names('configs.methods')
  seen = {name: cells['claimed and seen'] for name, cells in found.items()}
  assert '**contrary**' in seen['gspo'] and '; `long`, ' in seen['gspo']
  assert seen['sft'] == 'a baseline of `preferences`'
  assert seen['did'].startswith('not measured; headline: ')
  assert found['did']['acts in'] == f'no world: {where.NOWHERE["did"]}'
  assert 'greedy +0.200 [-0.020, +0.420], 5 seeds' in seen['toolrl']
  assert seen['toolrl'].startswith('**not seen**')
  lines = {
    name: [line.split(': ', 1) for line in seen[name].split('<br>')]
    for name in ('ada_grpo', 'degrpo', 'a2fm')
  }
  for name, claim, verdict in (
    ('ada_grpo', 'fewer tokens', 'contrary'),
    ('degrpo', 'fewer tokens', 'not seen'),
    ('a2fm', 'guesses where it is easy', 'seen'),
  ):
    (own,) = [found for found, text in lines[name] if text.startswith(claim)]
    assert own == f'**{verdict}**'
  assert ', 5 seeds' in seen['subpo']


def of_modes(method, seed, rate=3e-4, **last):
  """A line of a run in modes; columns that are not given are 0.5."""
  columns = dict.fromkeys(looped.WORLDS['modes'].columns, 0.5)
  line = made(method, seed, 0.5, rate, 'modes')
  line['course']['reward'] = [0.2, 0.5, 0.8]
  return line | {'last': columns | last, 'first': columns}


def test_a_claim_may_be_against_another_method():
  """Runs that lack a column are left out there, and empty in the table."""
  own = {
    'grpo': {'sampled': 0.5, 'length': 9.0},
    'a2fm': {'sampled': 0.4, 'length': 9.0},
    'degrpo': {'sampled': 0.3},
  }
  lines = [
    of_modes(name, s)
    | {'last': {k: v + 0.001 * s * (name == 'a2fm') for k, v in last.items()}}
    for name, last in own.items()
    for s in range(3)
  ]
  claims = {'a2fm': (trials.Claim('higher', against='degrpo'),)}
  one = dataclasses.replace(
    looped.WORLDS['modes'],
    rates=dict.fromkeys(own, 3e-4),
    columns={'sampled': '', 'length': ''},
    claims=claims,
  )
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(looped.WORLDS, 'modes', one)
    _, row = looped_tables.claims(lines, 'modes')
    table = looped_tables.methods(lines, 'modes')
    numbers = looped_tables.by_seed(lines, 'length')
  assert row[1:4] == ['higher (against degrpo)', 'sampled', '+0.101']
  assert table[-1][:5] == ['degrpo', '0.0003', '3', '0.300', '']
  assert sorted(numbers) == ['a2fm', 'grpo']


def test_claims_on_several_numbers():
  """Against GRPO, the gap against 0; the seed for rates counts nothing."""
  lines = [of_modes('grpo', s, length=20 + s, gap=0.0) for s in range(3)]
  lines += [
    of_modes('a2fm', s, length=10 + x, gap=0.2 + x, guesses=0.5, sampled=0.4)
    for s, x in enumerate((0.0, 1.1, 2.2))
  ]
  lines.append(of_modes('a2fm', looped.TUNING_SEED, length=99.0))
  of = {n: x for n, x in looped.WORLDS['modes'].claims.items() if n == 'a2fm'}
  one = dataclasses.replace(looped.WORLDS['modes'], claims=of)
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(looped.WORLDS, 'modes', one)
    _, *rows = looped_tables.claims(lines, 'modes')
  found = [(row[2], row[3], row[-1]) for row in rows]
  assert found == [
    ('guesses', '+0.000', 'not seen'),
    ('length', '-9.900', 'seen'),
    ('sampled', '-0.100', 'contrary'),
    ('gap', '+1.300', 'not seen'),
  ]
  assert looped_tables.tuned(lines, 'modes') == {'a2fm': {3e-4: 0.8}}


def test_profile_stars_what_is_separated():
  """In points; worlds without the method are empty."""

  def one(p):
    return intervals.Comparison(0.0974, 0.09, 0.1, p)

  effects = {'stale': {'gspo': one(0.01)}, 'returning': {'hapo': one(0.2)}}
  assert profile.profile(('gspo', 'hapo'), effects) == [
    ['method', 'stale', 'returning'],
    ['gspo', '+9.7*', ''],
    ['hapo', '', '+9.7'],
  ]


def test_a_line_of_a_run():
  """The last evaluation by short names; rewards that weigh nothing, too."""
  row = {'digest': 'd', 'name': 'n', 'setting': {}, 'commit': 'c', 'last': {}}
  rows = [
    {'step': 0, 'evaluation/avg_at_4': 0.1},
    {
      'step': 1,
      'rollout/reward': 0.0,
      'rollout/tokens_total': 7.0,
      'reward/outcome': 0.25,
      'policy/entropy': 0.5,
      'evaluation/avg_at_4': 0.12342,
    },
  ]
  found = excerpt.line(row, rows)
  assert found['last'] == {'sampled': 0.1234}
  assert found['course'] == {'tokens': [7], 'reward': [0.25], 'entropy': [0.5]}
  assert 'first' not in found


def test_a_line_of_a_looped_run():
  """Columns of the world, before and after; one is a difference."""
  row = {'digest': 'd', 'name': 'n', 'commit': 'c'}
  row['setting'] = {'config': 'modes'}
  share = 'evaluation/{}/sample_reward/guessed'
  rows = [
    {share.format('easy'): easy, share.format('hard'): hard}
    for easy, hard in ((0.4, 0.4), (0.9, 0.25))
  ]
  found = excerpt.line(row, rows)
  names = ('guesses easy', 'guesses hard', 'gap')
  assert found['first'] == dict(zip(names, (0.4, 0.4, 0.0), strict=True))
  assert found['last'] == dict(zip(names, (0.9, 0.25, 0.65), strict=True))
