"""Sums and quantiles of what happens while a batch is played."""

from rl_jax.episodes.calls import Answer, Request
from rl_jax.episodes.timeline import Activity


def _answer(seconds, kind='step'):
  return Answer(Request(0, 0, 1, kind), 'ok', None, 0.5, seconds)


def test_times_of_calls_have_quantiles():
  """A quantile is the time of a call, of 1 to 10 seconds and a slow one."""
  activity = Activity()
  activity.answered([_answer(float(n)) for n in (*range(1, 11), 500)])
  activity.answered([_answer(3.0, 'reset')])
  found = activity.metrics()
  assert found['calls/step/ran'] == 555 / 11
  names = ('ran_p50', 'ran_p90', 'ran_max', 'queued', 'queued_max')
  values = [found[f'calls/step/{name}'] for name in names]
  assert values == [6.0, 10.0, 500.0, 0.5, 0.5]
  assert found['calls/reset/ran_p50'] == found['calls/reset/ran_max'] == 3.0
  activity.begin()
  assert not any(name.startswith('calls/') for name in activity.metrics())
