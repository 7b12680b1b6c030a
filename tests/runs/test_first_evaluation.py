"""The evaluation before training, in a run that is stopped during it."""

import signal

import pytest

from rl_jax.overrides import override
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop

pytestmark = pytest.mark.usefixtures('no_mesh_left')


def test_it_is_done_and_counted_once(config, tmp_path, monkeypatch):
  """Counted twice, its value would not have risen, and 1 would be the last."""
  changes = {
    'iterations': '2',
    'evaluation.every': '2',
    'evaluation.num_samples': '0',
    'stopping.metric': 'evaluation/pass_at_1',
    'stopping.patience': '1',
  }
  for path, text in changes.items():
    config = override(config, path, text)
  evaluate, steps = loop.Trainer._evaluate, []

  def stopped(trainer):
    steps.append(trainer.counters.iteration)
    if len(steps) == 1:
      signal.raise_signal(signal.SIGTERM)
    return evaluate(trainer)

  monkeypatch.setattr(loop.Trainer, '_evaluate', stopped)
  with pytest.raises(SystemExit) as ended:
    loop.Trainer(config, str(tmp_path)).run()
  assert ended.value.code == 143
  (first,) = read_jsonl(tmp_path / 'metrics.jsonl')
  assert first['step'] == 0
  loop.Trainer(config, str(tmp_path)).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert rows[0] == first and [row['step'] for row in rows] == [0, 1, 2]
  assert steps == [0, 2]


def test_one_that_was_not_done_is_made_up_for(config, tmp_path, monkeypatch):
  """A run is stopped before its first iteration, and is to evaluate after."""
  for path, text in {'iterations': '1', 'evaluation.num_samples': '0'}.items():
    config = override(config, path, text)
  config = override(config, 'evaluation.every', '0')
  ended = loop.RowWatch.has_ended
  monkeypatch.setattr(loop.RowWatch, 'has_ended', lambda *_: True)
  loop.Trainer(config, str(tmp_path)).run()
  monkeypatch.setattr(loop.RowWatch, 'has_ended', ended)
  assert read_jsonl(tmp_path / 'metrics.jsonl') == []
  config = override(config, 'evaluation.every', '1')
  loop.Trainer(config, str(tmp_path)).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert [row['step'] for row in rows] == [0, 1]
  assert all('evaluation/pass_at_1' in row for row in rows)
