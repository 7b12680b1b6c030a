"""rl_jax.train and rl_jax.evaluate, as a program of a user calls them."""

import dataclasses

import pytest

from configs.methods import grpo
from configs.worlds import bandit
import rl_jax
from rl_jax.records.metrics import read_jsonl


@pytest.fixture(scope='module')
def workdir(tmp_path_factory, no_mesh_left):
  """Two iterations of the bandit."""
  folder = str(tmp_path_factory.mktemp('api') / 'run')
  config = bandit.get_config(grpo.get_method())
  config = dataclasses.replace(config, iterations=2)
  row = rl_jax.train(config, folder)
  assert row['step'] == 2
  return folder


def test_a_run_goes_on(workdir):
  """E0: the newest row is the last of the file; nothing is done twice."""
  config = bandit.get_config(grpo.get_method())
  config = dataclasses.replace(config, iterations=2)
  row = rl_jax.train(config, workdir)
  assert row['step'] == 2
  rows = read_jsonl(f'{workdir}/metrics.jsonl')
  assert [x['step'] for x in rows] == sorted({x['step'] for x in rows})


def test_a_run_is_evaluated(workdir):
  """On its own task; outcomes are those of the metrics."""
  metrics, outcomes = rl_jax.evaluate(workdir)
  assert metrics['n'] == len(outcomes['greedy']) > 0
  assert metrics['pass_at_1'] == pytest.approx(outcomes['greedy'].mean())


def test_mistakes_are_named(workdir, tmp_path):
  """Before a model is read."""
  with pytest.raises(ValueError, match="opponent = 'x': Bandit is not a game"):
    rl_jax.evaluate(workdir, opponent='x')
  with pytest.raises(ValueError, match='is not a work directory of a run'):
    rl_jax.evaluate(str(tmp_path / 'nothing'))
