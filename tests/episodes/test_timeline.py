"""Sums and quantiles of what happens while a batch is played."""

from rl_jax.episodes import timeline
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


def test_calls_are_counted_by_tool():
  """A step that calls two tools counts at both, and its span names them."""

  def tools(request):
    return ('search', 'python')[: request.turn]

  activity = Activity(tools)
  activity.recording = True
  for turn, seconds in ((0, 1.0), (1, 2.0), (2, 6.0)):
    request = Request(0, 0, turn, 'step' if turn else 'reset')
    activity.answered([Answer(request, 'ok', None, 0.5, seconds)])
  found = activity.metrics()
  names = ('step', 'step/search', 'step/python', 'reset')
  for name, count, mean in zip(
    names, (2, 2, 1, 1), (4.0, 4.0, 6.0, 1.0), strict=True
  ):
    assert found[f'calls/{name}/count'] == count
    assert found[f'calls/{name}/ran'] == mean
  assert 'calls/reset/search/ran' not in found
  assert found['calls/step/python/queued_p90'] == 0.5
  assert {span['name'] for span in activity._spans} == {
    'reset',
    'step search',
    'step search python',
  }


def test_the_device_works_until_all_has_ended(monkeypatch):
  """By a clock of the test: the first call counts, and what is open."""
  now = [0.0]
  monkeypatch.setattr(timeline.time, 'perf_counter', lambda: now[0])

  def at(seconds):
    now[0] = seconds
    return activity

  activity = timeline.Activity()
  at(1.0).works()
  at(3.0).works()
  at(4.0).worked('burst', False)
  at(6.0).worked('burst', True)
  at(9.0).worked('feed', True)
  assert at(10.0).seconds(timeline.DEVICE) == 5.0
  assert activity.metrics()['device/idle_share'] == 0.5
  activity.works()
  at(12.0).begin()
  assert at(13.0).seconds(timeline.DEVICE) == 1.0
