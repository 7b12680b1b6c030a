"""A run's directory: continued by its own configuration only."""

import json
import os

import pytest

from configs.worlds import bandit
from rl_jax.overrides import override
from rl_jax.runs import directory
from rl_jax.serialization import from_json


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
  """Mesh, checkpoints, logs, limits: each change is logged, none hidden.

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
    'verifier.timeout_seconds': '9.0',
    'evaluation.num_prompts': '9',
    'guards.max_logp_gap': 'null',
    'guards.log_rollouts': '1',
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
    'verifier.on_timeout': 'wrong',
    'model.compute_dtype': 'bfloat16',
  }.items():
    with pytest.raises(ValueError, match=path):
      directory.check(override(moved, path, text), workdir)


def test_a_change_on_purpose_is_named_and_recorded(config, tmp_path):
  """The error says how; the file then has the new value and the old one."""
  workdir = str(tmp_path / 'run')
  directory.write_config(config, workdir)
  other = override(config, 'optimizer.learning_rate', '0.5')
  other = override(other, 'method.losses.PPOClip.clip_high', '0.28')
  with pytest.raises(ValueError) as error:
    directory.check(other, workdir, ['optimizer'])
  assert 'optimizer.learning_rate' not in str(error.value)
  assert '--allow_change=method.losses.0.clip_high' in str(error.value)
  allowed = ['optimizer.learning_rate', 'method.losses.PPOClip.clip_high']
  changes = directory.check(other, workdir, allowed)
  directory.write_config(other, workdir, changes, 20)
  assert not directory.check(other, workdir).lines
  metrics = {
    'changed/method.losses.0.clip_high': 0.28,
    'changed/optimizer.learning_rate': 0.5,
  }
  assert directory.change_metrics(workdir) == {21: metrics}
  directory.write_config(other, workdir, None, 10)  # an older checkpoint
  assert directory.change_metrics(workdir) == {11: metrics}
  text = (tmp_path / 'run' / 'experiment.json').read_text()
  assert from_json(text) == other
  assert 'optimizer.learning_rate: 0.01 -> 0.5' in text
  with pytest.raises(ValueError, match="Did you mean 'learning_rate'"):
    directory.check(other, workdir, ['optimizer.learning_rat'])


def test_the_end_of_a_schedule_is_no_free_change(config, tmp_path):
  """With more iterations a cosine has other rates from the first step on."""
  workdir = str(tmp_path / 'run')
  config = override(config, 'optimizer.schedule', 'cosine')
  directory.write_config(config, workdir)
  longer = override(config, 'iterations', '99')
  with pytest.raises(ValueError, match='total_steps: 60 -> 99'):
    directory.check(longer, workdir)
  directory.check(longer, workdir, ['optimizer.total_steps'])


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


def test_a_damaged_history_is_found_at_start(config, tmp_path):
  """Not after an iteration, when it is read for metrics."""
  directory.write_config(config, str(tmp_path))
  path = tmp_path / 'experiment.json'
  saved = json.loads(path.read_text())
  path.write_text(json.dumps({**saved, 'history': 3}))
  with pytest.raises(
    ValueError, match='json is damaged: history is not a list'
  ):
    directory.check(config, str(tmp_path))


def test_a_pipe_among_the_files_is_refused(config, tmp_path):
  """Opening it would wait for ever."""
  os.mkfifo(tmp_path / 'metrics.jsonl')
  with pytest.raises(ValueError, match='metrics.jsonl is a pipe'):
    directory.check(config, str(tmp_path))


@pytest.mark.parametrize(
  'name', ['model.json', 'config.json', 'weights-00001-of-00002.safetensors']
)
def test_a_run_does_not_hide_a_model(config, name, tmp_path):
  """experiment.json would count more than the model; an existing run
  continues.
  """
  (tmp_path / name).write_text('')
  with pytest.raises(ValueError, match='holds a model .*another --workdir'):
    directory.check(config, str(tmp_path))
  directory.write_config(config, str(tmp_path))
  directory.check(config, str(tmp_path))


def test_adapters_are_of_the_model_that_a_run_began_with(config, tmp_path):
  """Not of the work directory, from which PEFT could load no model."""
  run, drawn = str(tmp_path / 'run'), str(tmp_path / 'drawn')
  tuned = override(config, 'model.path', 'models/base')
  directory.write_config(tuned, run)
  directory.write_config(config, drawn)
  assert directory.base_of(run) == 'models/base'
  assert directory.base_of(drawn) == drawn
  assert directory.base_of('models/tuned') == 'models/tuned'
