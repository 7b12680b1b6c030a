"""Tools that sleep, and the line of --stage=episodes."""

import json
import random

import numpy as np
import pytest

from experiments.benchmarks import episodes, traces
from experiments.benchmarks.episodes_simulation import Load
from rl_jax.models import presets
from rl_jax.tasks.base import Example


def test_calls_depend_on_seed_and_actions_only(monkeypatch):
  """Two episodes with the same actions sleep for the same times."""
  slept = []
  monkeypatch.setattr(episodes.time, 'sleep', slept.append)
  task = episodes.Slow(turns=4, mean=0.5)

  def played(seed, actions):
    slept.clear()
    episode = task.make(None)
    assert len(episode.reset(seed).observation) == episodes.PROMPT
    replies = [episode.step(action) for action in actions]
    return [reply.done for reply in replies], list(slept)

  actions = ['a', 'b', 'c', 'd']
  assert played(3, actions) == played(3, actions)
  assert played(3, actions)[1] != played(4, actions)[1]
  turns = {played(3, [f'{n}', *actions])[0].index(True) for n in range(30)}
  assert turns == {0, 1, 2, 3}


@pytest.mark.parametrize('kind', ['constant', 'lognormal', 'heavy'])
def test_the_mean_of_calls(kind):
  """The mean over 4000 calls; a heavy one is up to 30 means."""
  task, own = episodes.Slow(kind=kind, mean=0.5), random.Random(0)
  seconds = [task.seconds(own) for _ in range(4000)]
  assert np.mean(seconds) == pytest.approx(0.5, rel=0.15)
  assert max(seconds) <= 30 * 0.5 + 1e-6


def test_a_closed_gate_costs_no_time(monkeypatch, tmp_path):
  """The reply says the seconds all the same."""
  slept = []
  monkeypatch.setattr(episodes.time, 'sleep', slept.append)
  gate = tmp_path / 'gate'
  episode = episodes.Slow(mean=0.5, gate=str(gate)).make(None)
  episode.reset(3)
  first = episode.step('a').info[episodes.SECONDS]
  assert first > 0 and not slept
  gate.touch()
  assert [episode.step('b').info[episodes.SECONDS]] == slept


def test_a_hedged_step_takes_another_time(monkeypatch, tmp_path):
  """By two processes: each makes the step; the info is the same in both."""
  slept = []
  monkeypatch.setattr(episodes.time, 'sleep', slept.append)
  (tmp_path / 'gate').touch()
  gate = str(tmp_path / 'gate')
  task = episodes.Slow(turns=4, mean=0.5, gate=gate, hedged=True)
  assert task.traits.pure and not episodes.Slow().traits.pure
  example = Example(prompt='', answer='', id=3)
  first, other = task.make(example), task.make(example)
  first.reset(3)
  action = next(f'{n}' for n in range(99) if not _ends(task, f'{n}'))
  first.step(action)
  slept.clear()
  other.continue_after((action,))
  replies = first.step('b'), other.step('b')
  assert replies[0] == replies[1]
  seconds = replies[0].info[episodes.SECONDS]
  assert seconds == min(slept[0], 1.0 + slept[1]) and slept[0] != slept[1]


def _ends(task, action):
  episode = task.make(None)
  episode.reset(3)
  return episode.step(action).done


def test_the_cost_of_a_step_by_hand():
  """A line through (2, 5) and (6, 9); what falls with the rows is constant."""
  found = episodes.step_cost([1, 2, 3, 6, 6], [5.0, 5.0, 7.0, 9.0, 9.0])
  assert found == (3.0, 1.0)
  assert episodes.step_cost([4, 4, 4], [1.0, 3.0, 2.0]) == (2.0, 0.0)
  assert episodes.step_cost([1, 3], [2.0, 1.0]) == (2.0, 0.0)
  assert episodes.step_cost([2, 4], [1.0, 9.0]) == (0.0, 0.5)


def test_the_names_of_ways():
  """A name makes its way; other texts are errors."""
  for name in ('fixed K=0', 'arrival K=3', 'fixed K=1 hedged'):
    assert episodes.named(name).name == name
  assert episodes.named('arrival K=3').rollout['order'] == 'arrival'
  assert 'order' not in episodes.named('fixed K=1').rollout
  with pytest.raises(ValueError, match="'dropping K=1' is not a way"):
    episodes.named('dropping K=1')


def test_the_busy_part_of_a_line_by_hand():
  """Spans that overlap count once; those of other lines do not."""
  spans = [
    traces.Span('device', 'a', 0.0, 2.0, {}),
    traces.Span('device', 'b', 1.0, 3.0, {}),
    traces.Span('calls 00', 'c', 3.0, 9.0, {}),
    traces.Span('device', 'd', 5.0, 7.0, {}),
  ]
  assert traces.covered(spans, 'device', 0.5, 6.0) == 2.5 + 1.0


def test_a_trace_is_drawn_from_a_closing_on(tmp_path):
  """Spans before it are left out; calls that run at a time are counted."""
  spans = [
    traces.Span('device', 'burst', 0.0, 1.0, {}),
    traces.Span('closings', 'update 1', 1.0, 1.0, {}),
    traces.Span('device', 'burst', 1.0, 2.0, {}),
    traces.Span('calls 00', 'step', 1.5, 3.0, {}),
    traces.Span('calls 01', 'step', 2.0, 4.0, {}),
    traces.Span('closings', 'update 2', 4.0, 4.0, {}),
  ]
  shown = traces.between(spans, 1)
  assert [span.start for span in shown] == [1.0, 1.0, 1.5, 2.0, 4.0]
  times, counts = traces.running(shown, 'calls')
  assert (times, counts) == ([1.5, 2.0, 3.0, 4.0], [1, 2, 1, 0])
  traces.draw([('a', shown), ('b', shown)], str(tmp_path / 'two.png'))
  assert (tmp_path / 'two.png').stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['lognormal', 'constant'])
def test_measured_and_simulated_have_the_same_keys(kind, tmp_path):
  """Three updates of 4 x 4 rows; speeds are relative to simulated turns in
  step."""
  load = Load(
    groups=4, group=4, turns=5, tokens=8, spread=0.0, observation=16, alike=0.0
  )
  cfg = presets.small(vocab_size=512, width=16, num_heads=2, head_size=8)
  ways = [episodes.ON_POLICY, episodes.with_staleness(1)]
  found = episodes.measured(cfg, load, kind, 0.3, 3, ways, str(tmp_path))
  print(json.dumps({'calls': kind, **found}))
  assert list(found) == ['fixed K=0', 'fixed K=1']
  for one in found.values():
    assert one['measured'].keys() == one['simulated'].keys()
    assert one['measured']['time'] > 0 and 0 < one['measured']['busy'] <= 1
    assert 0 < one['simulated']['busy'] <= 1
    speeds = one['measured']['speed'], one['simulated']['speed']
    ratio = one['in_step']['time'] / one['measured']['time']
    assert speeds[0] == ratio and one['speed_ratio'] == ratio / speeds[1]
  shown = [
    (way.name, traces.between(traces.read(tmp_path / f'{way.name}.json'), 2))
    for way in ways
  ]
  traces.draw(shown, str(tmp_path / 'ways.png'))
