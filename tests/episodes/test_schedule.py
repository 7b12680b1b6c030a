"""The rule: ages, batches and the number of groups, in any order of answers."""

import dataclasses
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from rl_jax.episodes.schedule import Begin, Close, Rule, Schedule


@dataclasses.dataclass
class Run:
  """A run of the rule: closings, versions of groups, what the selector got."""

  closes: list = dataclasses.field(default_factory=list)
  version: dict = dataclasses.field(default_factory=dict)
  observed: list = dataclasses.field(default_factory=list)
  most_open: int = 0
  most_ahead: int = 0  # groups that started besides those used


def play(rule, updates, rng, drops=lambda serial: False, closings=None):
  """Judges open groups in an order of rng until so many batches closed."""
  schedule, run, open_ = Schedule(rule, closings), Run(), []

  def follow(actions):
    for action in actions:
      run.observed += action.observe
      if isinstance(action, Begin):
        open_.extend(action.groups)
        run.version |= dict.fromkeys(action.groups, action.version)
        assert action.version == len(run.closes)
      else:
        run.closes.append(action)
    ahead = schedule.started - sum(len(c.used) for c in run.closes)
    run.most_ahead = max(run.most_ahead, ahead)

  follow(schedule.updated())
  while len(run.closes) < updates:
    if schedule.update > sum(1 for _ in run.closes) - 1 and _waits(schedule):
      follow(schedule.updated())
      continue
    serial = open_.pop(rng.randrange(len(open_)))
    follow(schedule.judged(serial, not drops(serial)))
  return run


def _waits(schedule):
  """Returns whether the schedule waits for weights: then it has a state."""
  try:
    schedule.state()
  except ValueError:
    return False
  return True


RULES = st.builds(
  Rule,
  groups=st.integers(1, 4),
  staleness=st.integers(0, 3),
  order=st.sampled_from(['fixed', 'arrival']),
  max_rounds=st.integers(1, 4),
)
SEEDS = st.integers(0, 2**32)


def dropper(seed, share):
  """Groups that a filter drops: a function of the serial only."""
  return lambda serial: random.Random(f'{seed} {serial}').random() < share


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS)
def test_fixed_without_a_filter_is_the_schedule_of_staleness(rule, seed):
  """Group g trains in update g // N, by weights max(0, g // N - K)."""
  rule = dataclasses.replace(rule, order='fixed')
  run, N = play(rule, 6, random.Random(seed)), rule.groups
  for update, close in enumerate(run.closes):
    assert close.update == update
    assert close.groups == tuple(range(update * N, (update + 1) * N))
    assert close.kept == N and close.used == close.groups
  for serial, version in run.version.items():
    assert version == max(0, serial // N - rule.staleness)
  assert run.observed == list(range(6 * N))
  assert run.most_ahead == (rule.staleness + 1) * N


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS, share=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_no_group_is_older_than_the_staleness(rule, seed, share):
  """With filters and by arrival, too; serial order in a batch, none twice."""
  run = play(rule, 6, random.Random(seed), dropper(seed, share))
  used = [serial for close in run.closes for serial in close.used]
  assert len(set(used)) == len(used)
  for close in run.closes:
    kept = close.groups[: close.kept]
    assert len(close.groups) == rule.groups and kept == tuple(sorted(kept))
    for serial in close.used:
      age = close.update - run.version[serial]
      assert 0 <= age <= rule.staleness
  assert len(set(run.observed)) == len(run.observed)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS, share=st.sampled_from([0.0, 0.4, 0.9]))
def test_the_fixed_order_depends_on_rewards_and_never_on_time(
  rule, seed, share
):
  """Two orders of answers: closings, versions, and what the selector gets."""
  rule, drops = dataclasses.replace(rule, order='fixed'), dropper(seed, share)
  first = play(rule, 5, random.Random(seed), drops)
  second = play(rule, 5, random.Random(seed + 1), drops)
  assert first.closes == second.closes
  assert first.observed == second.observed
  common = first.version.keys() & second.version.keys()
  assert all(first.version[g] == second.version[g] for g in common)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS, share=st.sampled_from([0.0, 0.4]))
def test_by_arrival_every_kept_group_trains_once(rule, seed, share):
  """Nothing is dropped but by the filter; at most 2N are ahead, and a round."""
  rule = dataclasses.replace(rule, order='arrival', staleness=2)
  drops = dropper(seed, share)
  run = play(rule, 12, random.Random(seed), drops)
  trained = {g for close in run.closes for g in close.groups[: close.kept]}
  used = {g for close in run.closes for g in close.used}
  assert {g for g in used if not drops(g)} == trained
  # Whatever started three or more updates ago has been used.
  old = {g for g, version in run.version.items() if version <= 11 - 2}
  assert old <= used
  more = rule.groups * (rule.max_rounds - 1) if share else 0
  assert run.most_ahead <= 2 * rule.groups + more


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS, share=st.sampled_from([0.0, 0.4, 0.9]))
def test_journaled_closings_are_repeated_in_any_order(rule, seed, share):
  """A run by arrival is a function of rewards and journal."""
  rule, drops = dataclasses.replace(rule, order='arrival'), dropper(seed, share)
  first = play(rule, 6, random.Random(seed), drops)
  known = {
    c.update: (c.groups, set(c.used) - {*c.groups}) for c in first.closes
  }
  again = play(rule, 6, random.Random(seed + 1), drops, known)
  assert [c.groups for c in again.closes] == [c.groups for c in first.closes]
  assert [c.observe for c in again.closes] == [c.observe for c in first.closes]
  common = first.version.keys() & again.version.keys()
  assert all(first.version[g] == again.version[g] for g in common)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(rule=RULES, seed=SEEDS)
def test_a_run_continues_from_any_closing(rule, seed):
  """E0: the state between a closing and its weights, as JSON would hold it."""
  rule = dataclasses.replace(rule, order='fixed')
  drops = dropper(seed, 0.4)
  whole = play(rule, 6, random.Random(seed), drops)
  schedule, rng, open_, closes = Schedule(rule), random.Random(seed), [], []

  def follow(actions):
    for action in actions:
      if isinstance(action, Begin):
        open_.extend(action.groups)
      else:
        closes.append(action)

  while len(closes) < 6:
    state = schedule.state()
    schedule, open_ = Schedule(rule), []
    follow(schedule.restore(state))
    before = len(closes)
    follow(schedule.updated())
    while len(closes) == before:
      serial = open_.pop(rng.randrange(len(open_)))
      follow(schedule.judged(serial, not drops(serial)))
  assert closes == whole.closes


def test_a_slow_group_by_hand():
  """N = 1, K = 2, by arrival: group 0 is late and update 2 waits for it."""
  schedule = Schedule(Rule(groups=1, staleness=2, order='arrival'))
  assert schedule.updated() == [Begin(0, range(0, 2))]
  assert schedule.judged(1) == [Close(0, (1,), 1, (1,), (1,))]
  assert schedule.updated() == [Begin(1, range(2, 3))]
  assert schedule.judged(2) == [Close(1, (2,), 1, (2,), (2,))]
  assert schedule.updated() == [Begin(2, range(3, 4))]
  assert schedule.judged(3) == []  # group 0 started two updates ago
  assert schedule.judged(0) == [Close(2, (0,), 1, (0,), (0,))]
  assert schedule.updated() == [
    Begin(3, range(4, 5)),
    Close(3, (3,), 1, (3,), (3,)),
  ]


def test_rounds_of_a_filter_by_hand():
  """N = 2, K = 0: a round is short, the next one is one group too many."""
  schedule = Schedule(Rule(groups=2, max_rounds=2))
  assert schedule.updated() == [Begin(0, range(2))]
  assert schedule.judged(1, kept=True) == []
  assert schedule.judged(0, kept=False) == [Begin(0, range(2, 4), (0, 1))]
  assert schedule.judged(2) == []
  (close,) = schedule.judged(3)
  assert close == Close(0, (1, 2), 2, (0, 1, 2, 3), (2, 3))
  assert schedule.updated() == [Begin(1, range(4, 6))]
  schedule.judged(4, kept=False)
  schedule.judged(5, kept=False)
  schedule.judged(6, kept=False)
  (close,) = schedule.judged(7)  # the rounds are over: dropped groups fill it
  assert close.groups == (7, 4) and close.kept == 1


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'order': 'late'}, "Rule.order = 'late'"),
    ({'groups': 0}, 'Rule.groups = 0'),
    ({'staleness': -1}, 'Rule.staleness = -1'),
    ({'max_rounds': 0}, 'Rule.max_rounds = 0'),
    ({'round_groups': 1}, 'Rule.round_groups = 1'),
    ({'round_groups': 4, 'staleness': 1}, 'Rule.round_groups = 4'),
  ],
)
def test_bad_rules_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    Rule(**{'groups': 2, **fields})


def test_a_group_is_judged_once():
  schedule = Schedule(Rule(groups=2))
  schedule.updated()
  schedule.judged(0)
  for serial in (0, 2):
    with pytest.raises(ValueError, match=f'group {serial} is not one'):
      schedule.judged(serial)
  with pytest.raises(ValueError, match='update 0 is not complete'):
    schedule.updated()
