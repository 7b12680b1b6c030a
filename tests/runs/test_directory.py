"""A run's directory: continued by its own configuration alone."""

import json

import pytest

from configs import bandit
from rl_jax.overrides import override
from rl_jax.runs import directory


@pytest.fixture
def config(toy):
  """GRPO on the bandit."""
  return bandit.get_config(toy.get_method('grpo'))


def test_a_workdir_belongs_to_one_configuration(config, tmp_path):
  """The difference is shown; more iterations only continue the run."""
  workdir = str(tmp_path / 'run')
  directory.check(config, workdir)
  directory.write_config(config, workdir)
  directory.check(config, workdir)
  directory.check(override(config, 'iterations', '99'), workdir)
  other = override(config, 'optimizer.learning_rate', '0.5')
  other = override(other, 'method.losses.PPOClip.clip_high', '0.28')
  with pytest.raises(ValueError) as error:
    directory.check(other, workdir)
  text = str(error.value)
  assert 'method.losses.0.clip_high: 0.2 -> 0.28' in text
  assert 'optimizer.learning_rate: 0.01 -> 0.5' in text
  assert 'experiment.json' in text


def test_a_run_may_move(config, tmp_path, caplog):
  """Mesh, microbatches, checkpoints, logs: each change is logged, none hidden.

  Fields with similar names that do decide numbers are still refused.
  """
  workdir = str(tmp_path / 'run')
  directory.write_config(config, workdir)
  free = {
    'mesh.tensor': '2',
    'update.microbatch_prompts': '4',
    'update.pack': 'false',
    'checkpoint.every': '3',
    'verifier.num_workers': '2',
    'model.remat': 'true',
  }
  moved = config
  for path, text in free.items():
    moved = override(moved, path, text)
  directory.check(moved, workdir)
  for path in free:
    assert f'continuing with another {path}: ' in caplog.text
  caplog.clear()
  directory.check(config, workdir)
  assert 'another' not in caplog.text
  for path, text in {
    'update.minibatch_prompts': '4',
    'verifier.timeout_seconds': '9.0',
    'evaluation.num_prompts': '9',
  }.items():
    with pytest.raises(ValueError, match=path):
      directory.check(override(moved, path, text), workdir)


def test_checkpoints_without_a_configuration_are_refused(config, tmp_path):
  """Files that were moved away in part must not be continued as another run."""
  step = tmp_path / 'checkpoints' / 'step_00000007'
  step.mkdir(parents=True)
  (step / 'COMMITTED').touch()
  with pytest.raises(ValueError, match='checkpoints but no experiment.json'):
    directory.check(config, str(tmp_path))


def test_the_first_configuration_stays(config, tmp_path):
  """A continued run does not rewrite what it began with."""
  workdir = str(tmp_path / 'run')
  directory.write_config(config, workdir)
  directory.write_config(override(config, 'iterations', '99'), workdir)
  saved = json.loads((tmp_path / 'run' / 'experiment.json').read_text())
  assert saved['iterations'] == 60


def test_a_path_that_loses_checkpoints_is_refused(config, tmp_path):
  """Before anything is written."""
  with pytest.raises(ValueError, match='takes for a pattern'):
    directory.check(config, str(tmp_path / 'lr[0.1]'))
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('text', ['', '{', '{"a": 1}', '[1', 'null'])
def test_a_damaged_configuration_is_named(config, tmp_path, text):
  """Never taken for another configuration, nor a traceback."""
  (tmp_path / 'experiment.json').write_text(text)
  with pytest.raises(ValueError, match=r'experiment\.json'):
    directory.check(config, str(tmp_path))
