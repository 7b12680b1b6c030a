"""Rounds of an iteration as one: their metrics."""

import numpy as np

from rl_jax.rollouts.rounds import Round, joined, metrics_of


def make_round(rewards, errors=(), **metrics):
  """A round of one prompt; rows without a reward or an error took no part."""
  failed = dict(errors)
  return Round(
    indices=np.array([0]),
    examples=[None],
    texts=[''] * len(rewards),
    errors=[failed.get(row) for row in range(len(rewards))],
    reward_NG=np.array([rewards], np.float32),
    tokens=1,
    responses={},
    metrics=metrics,
  )


def of_turns(*rounds):
  """Metrics of (row rewards, errors, mean of turns) as of one round."""
  parts = [make_round(*one, **{'episode/turns': x}) for *one, x in rounds]
  return metrics_of(parts)['episode/turns']


def test_means_are_over_rows():
  """By hand: 4 rows of 3 turns and 2 of 9, (12 + 18) / 6 = 5; a failed row has
  had turns, a row that took no part has none."""
  four, two = ([1.0, 0.0, 0.5, 0.5], ()), ([1.0, np.nan], ((1, 'died'),))
  assert of_turns((*four, 3.0), (*two, 9.0)) == 5.0
  assert of_turns((*two, 9.0), (*four, 3.0)) == 5.0
  idle = [1.0, 0.0, np.nan, np.nan]
  assert of_turns((idle, (), 3.0), (*two, 9.0)) == 6.0


def test_the_same_rows_in_more_rounds_change_no_mean():
  """One round of four rows, or two of them."""
  whole = make_round([1.0] * 4, x=2.75)
  assert metrics_of([whole]) == {'x': 2.75}
  split = make_round([1.0] * 3, x=3.0), make_round([1.0], x=2.0)
  assert metrics_of(split) == {'x': 2.75}


def test_rounds_that_lack_a_metric_do_not_count():
  none = make_round([np.nan] * 4, **{'time/environment_seconds': 0.5})
  some = make_round([1.0, 0.0], x=4.0, **{'time/environment_seconds': 2.0})
  assert metrics_of([some, none]) == {'time/environment_seconds': 2.5, 'x': 4.0}


def test_without_rows_all_rounds_count_alike():
  """A share that is of no rows, while none has ended."""
  waits = [make_round([np.nan], x=x) for x in (1.0, 0.5)]
  assert metrics_of(waits) == {'x': 0.75}
  assert metrics_of([]) == {}


def test_counts_and_seconds_are_sums():
  names = (
    *('episode/cut_observations', 'episode/mismatches'),
    *('episode/failed_resets', 'episode/questions'),
    *('calls/timeouts', 'calls/retries', 'calls/hedged'),
    *('time/environment_seconds', 'time/partner_seconds'),
  )
  first = make_round([1.0] * 4, **dict.fromkeys(names, 3))
  second = make_round([1.0], **dict.fromkeys(names, 2.5))
  assert metrics_of([first, second]) == dict.fromkeys(names, 5.5)


def test_parts_of_a_round_have_its_metrics():
  """The metrics are those of consecutive rounds, also when joined again."""
  one = [1.0] + [np.nan] * 3
  parts = [make_round([1.0] * 4, x=3.0), make_round(one, x=8.0)]
  assert joined(parts).metrics == {'x': 4.0}
  last = make_round([0.0] * 5, x=0.0)
  assert metrics_of([joined(parts), last]) == {'x': 2.0}
