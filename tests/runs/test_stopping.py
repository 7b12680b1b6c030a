"""When a run ends before its last iteration."""

import dataclasses
import json

import pytest

from configs.worlds import bandit
from rl_jax.config import StoppingConfig, check_stopping_metric, validate
from rl_jax.runs import stopping
from rl_jax.runs.stopping import EarlyStopping

CONFIG = StoppingConfig(metric='evaluation/x', patience=2, min_delta=0.1)
VALUES = [0.1, None, 0.15, 0.3, None, 0.35, float('nan'), 0.9, 0.9]


def row(step):
  value = VALUES[step]
  found = {'step': step, 'train/loss': 0.0}
  return found if value is None else {**found, 'evaluation/x': value}


def last_iteration(boundaries, config=CONFIG):
  """The last iteration of a run that is interrupted at these iterations. There
  the row of an iteration is read at once, otherwise during the next one.

  There the row of an iteration is read at once, otherwise during the next one.
  """
  rule, step, read = EarlyStopping(config), 0, -1
  while step < len(VALUES) - 1 and not rule.due(step):
    step += 1
    ready = step if step in boundaries else step - 1
    while read < ready:
      read += 1
      rule.see(row(read))
    if step in boundaries:
      state = json.loads(json.dumps(rule.state()))
      rule = EarlyStopping(config)
      rule.restore(state)
  return step, rule


@pytest.mark.parametrize('boundaries', [(), (6,), (5, 6), (7,), range(1, 9)])
def test_patience_counts_rows_with_the_metric(boundaries):
  """0.3 at 3 is the best; 0.35 and NaN at 5 and 6 do not count: the end is 7.

  Wherever the run is interrupted.
  """
  step, rule = last_iteration(boundaries)
  assert (step, rule.best, rule.waited) == (7, 0.3, 2)


def test_less_may_be_better():
  """0.1 at the beginning, and then twice no less."""
  config = dataclasses.replace(CONFIG, mode='min', min_delta=0.0)
  assert last_iteration((), config)[0] == 4


@pytest.mark.parametrize('boundaries', [(), (3,), (4,)])
def test_a_target_ends_the_run(boundaries):
  """0.3 at 3 is the first at or above 0.25; patience does not count."""
  config = dataclasses.replace(CONFIG, patience=None, target=0.25)
  assert last_iteration(boundaries, config)[0] == 4
  never = dataclasses.replace(config, target=0.95)
  assert last_iteration(boundaries, never)[0] == len(VALUES) - 1
  less = dataclasses.replace(config, mode='min', target=0.12)
  assert last_iteration(boundaries, less)[0] == 1


def test_an_ended_run_goes_on_with_more_patience():
  """The count stays; another metric begins again."""
  _, rule = last_iteration(())
  again = EarlyStopping(CONFIG)
  again.restore(rule.state())
  assert again.due(7)
  longer = EarlyStopping(dataclasses.replace(CONFIG, patience=3))
  longer.restore(rule.state())
  assert not longer.due(7) and longer.waited == 2
  other = EarlyStopping(dataclasses.replace(CONFIG, metric='reward/mean'))
  other.restore(rule.state())
  assert other.best is None


def test_an_unknown_metric_is_named():
  """In the first row that should have it."""
  rule = EarlyStopping(dataclasses.replace(CONFIG, metric='reward/men'))
  rule.see({'step': 0, 'evaluation/x': 1.0})
  with pytest.raises(ValueError, match="stopping.metric: .* 'reward/mean'"):
    rule.see({'step': 1, 'train/loss': 0.0, 'reward/mean': 1.0})
  rule = EarlyStopping(dataclasses.replace(CONFIG, metric='evaluation/y'))
  rule.see({'step': 1, 'train/loss': 0.0})
  with pytest.raises(ValueError, match="'evaluation/y'"):
    rule.see({'step': 2, 'train/loss': 0.0, 'evaluation/x': 1.0})


def test_a_metric_that_is_never_computed_is_refused(toy):
  """At start."""
  config = bandit.get_config(toy.get_method('reinforce'))
  config = dataclasses.replace(
    config,
    stopping=CONFIG,
    evaluation=dataclasses.replace(config.evaluation, every=0),
  )
  with pytest.raises(ValueError, match='evaluation.every = 0'):
    validate(config)
  alone = dataclasses.replace(config, stopping=StoppingConfig(target=0.5))
  with pytest.raises(ValueError, match='set stopping.metric'):
    validate(alone)


@pytest.mark.parametrize('name', ['evalution/pass_at_1', 'loss', ''])
def test_a_misspelt_word_is_refused_at_start(toy, name):
  """With those that there are; a user's piece may have its own metrics."""
  method = toy.get_method('reinforce')
  with pytest.raises(
    ValueError, match=f'metric = {name!r}.*of batch, calls, epi'
  ):
    check_stopping_metric(name, 1, method)
  own = type('OwnPiece', (), {})()
  check_stopping_metric(name, 1, method.replace(weights=(own,)))
  check_stopping_metric('train/loss', 0, method)


def test_a_session_has_a_limit(monkeypatch):
  """The limit is in seconds of the session."""
  now = [100.0]
  monkeypatch.setattr(stopping.time, 'monotonic', lambda: now[0])
  clock, unlimited = stopping.SessionClock(5.0), stopping.SessionClock(None)
  assert not clock.is_over()
  now[0] = 105.0
  assert clock.is_over() and not unlimited.is_over()


@pytest.mark.parametrize(
  ('name', 'values'),
  [
    ('policy/entropy_change', [None, 0.1, 0.2]),
    ('influence/cos', [0.1, None, 0.2]),  # of every second iteration
    ('rollout/reward/rare', [0.1, None, 0.2]),  # of a part of a mixture
  ],
)
def test_some_rows_may_lack_the_metric(name, values):
  """It is not a mistake in its name, and patience does not count them."""
  rule = EarlyStopping(StoppingConfig(metric=name, patience=1))
  for step, value in enumerate(values, 1):
    found = {} if value is None else {name: value}
    rule.see({'step': step, 'train/loss': 0.0, **found})
  assert (rule.best, rule.last) == (0.2, None)
