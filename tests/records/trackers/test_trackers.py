"""Trackers: what fails or stalls there costs rows, never a run."""

import json
import sys
import threading
import types

import pytest

from rl_jax.records import trackers
from rl_jax.records.metrics import MetricsWriter, read_jsonl
from rl_jax.records.trackers import Guarded, InBackground, TrackingConfig
from rl_jax.records.trackers.services import Place


class Service:
  """Keeps rows; fails at those in `bad`, and at as many starts as
  configured.
  """

  name = 'the service'

  def __init__(self, bad=(), starts=0):
    self.bad, self.starts = bad, starts
    self.rows, self.steps, self.closed = [], [], False

  def start(self, next_step):
    self.starts -= 1
    if self.starts >= 0:
      raise ConnectionError('no route')
    self.steps.append(next_step)

  def log(self, row):
    if row['step'] in self.bad:
      raise RuntimeError('quota')
    self.rows.append(row['step'])

  def close(self):
    self.closed = True
    raise RuntimeError('not closed')


@pytest.mark.parametrize('kind', [Guarded, InBackground])
def test_a_failing_service_costs_its_rows(kind, tmp_path, caplog):
  """They are counted; the others arrive in order."""
  service = Service(bad=(2, 3))
  writer = MetricsWriter(tmp_path, trackers=[kind(service)])
  writer.truncate_to({}, next_step=1)
  for step in range(1, 6):
    writer.log(step, {'reward/mean': 0.5})
  writer.close()
  assert service.rows == [1, 4, 5] and service.steps == [1] and service.closed
  assert len(read_jsonl(tmp_path / 'metrics.jsonl')) == 5
  assert 'the service cannot be written (RuntimeError: quota)' in caplog.text
  assert 'the service lacks 2 rows' in caplog.text


def test_a_service_that_does_not_start_is_tried_again_later(monkeypatch):
  """After a minute, not in every iteration."""
  now = [1000.0]
  monkeypatch.setattr(trackers.guarded.time, 'monotonic', lambda: now[0])
  service = Service(starts=1)
  guarded = Guarded(service)
  guarded.start(None)
  for step in range(4):
    guarded.log({'step': step})
    now[0] += 25
  assert service.rows == [3] and guarded.lost == 3


def test_a_service_that_stalls_does_not_stall_the_run(monkeypatch, caplog):
  """Rows wait in a queue of limited length, and the end waits in vain."""
  stalled = threading.Event()
  service = Service()
  service.log = lambda row: stalled.wait()
  tracker = InBackground(service)
  tracker.start(None)
  for step in range(1100):
    tracker.log({'step': step})
  assert 'it is too slow' in caplog.text
  tracker.close(seconds=0.1)
  assert 'the service did not end within' in caplog.text
  stalled.set()
  tracker.close()


class FakeRun:
  """A run of wandb."""

  def __init__(self, log, **settings):
    log.append(settings)
    self.rows, self.define_metric = [], lambda *args, **kwargs: None

  def log(self, row):
    self.rows.append(row)

  def finish(self):
    pass


def test_a_continued_run_is_the_same_run_at_wandb(tmp_path, monkeypatch):
  """By an id in the work directory; the configuration is shown."""
  inits = []
  fake = types.ModuleType('wandb')
  fake.__spec__ = types.SimpleNamespace()
  fake.init = lambda **settings: FakeRun(inits, **settings)
  monkeypatch.setitem(sys.modules, 'wandb', fake)
  config = TrackingConfig(trackers=('wandb',), project='p')
  trackers.check(config)
  for _ in range(2):
    workdir = tmp_path / 'run'
    workdir.mkdir(exist_ok=True)
    (tracker,) = trackers.make(config, workdir, {'seed': 3})
    writer = MetricsWriter(workdir, trackers=[tracker])
    writer.log(1, {'reward/mean': 0.5})
    writer.close()
  assert [x['id'] for x in inits] == [inits[0]['id']] * 2
  known = json.loads((tmp_path / 'run' / 'trackers.json').read_text())
  assert known == {'wandb': inits[0]['id']}
  assert inits[0]['resume'] == 'allow' and inits[0]['config'] == {'seed': 3}
  assert inits[0]['project'] == 'p' and inits[0]['name'] == 'run'


def test_names_and_packages_are_checked_at_start(monkeypatch):
  """The errors say what to do; TensorBoard files need a package, too."""
  with pytest.raises(ValueError, match="'wandbb' is none of tensorboard"):
    TrackingConfig(trackers=('wandbb',))
  monkeypatch.setattr(
    trackers.services.importlib.util, 'find_spec', lambda name: None
  )
  with pytest.raises(ValueError, match='pip install tensorboardX$'):
    trackers.check(TrackingConfig())
  trackers.check(TrackingConfig(trackers=()))
  with pytest.raises(ValueError, match=r"pip install 'rl_jax\[mlflow\]'"):
    trackers.check(TrackingConfig(trackers=('mlflow',)))


def test_ids_survive_a_damaged_file(tmp_path):
  """Then the service gets a new run."""
  place = Place(str(tmp_path), 'p', 'n', {})
  assert place.run_id('a') is None
  one = place.remember('a')
  place.remember('b', 'given')
  assert (place.run_id('a'), place.run_id('b')) == (one, 'given')
  (tmp_path / 'trackers.json').write_text('[')
  assert place.run_id('a') is None and place.remember('a') != one
