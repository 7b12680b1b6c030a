"""Committed steps can be restored: paths, the index of arrays, the end."""

import os

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.records.checkpoints import files
from rl_jax.records.checkpoints.checkpointer import (
  Checkpointer,
  CheckpointError,
)


@pytest.mark.parametrize('name', ['a[1]', '*', 'q?', 'back\\slash', 'x]'])
def test_a_path_that_orbax_takes_for_a_pattern_is_refused(tmp_path, name):
  """Orbax would skip the merge with a warning: committed, not restorable."""
  saver = Checkpointer(tmp_path / name / 'checkpoints')
  with pytest.raises(ValueError, match='takes for a pattern'):
    saver.save(1, {'x': jnp.ones(3)})
  saver.close()
  assert not list(tmp_path.iterdir())


def test_a_path_that_is_not_utf8_is_refused(tmp_path):
  name = os.fsdecode(b'caf\xe9')
  with pytest.raises(ValueError, match='not valid UTF-8'):
    files.check_directory(tmp_path / name)


@pytest.mark.parametrize('name', ['{x}', 'a%20b#c', 'ü :|"$;&', '-f', 'l\nm'])
def test_other_characters_save_and_restore(tmp_path, name):
  """E0: nothing more than what fails is refused."""
  saver = Checkpointer(tmp_path / name)
  saver.save(1, {'x': jnp.arange(3.0)})
  found = saver.restore({'x': np.empty(3, np.float32)})
  np.testing.assert_array_equal(found.tree['x'], np.arange(3.0))
  saver.close()


def test_a_link_names_a_directory_with_special_characters(tmp_path):
  """The message says that a link works."""
  (tmp_path / 'a[1]').mkdir()
  (tmp_path / 'link').symlink_to(tmp_path / 'a[1]')
  saver = Checkpointer(tmp_path / 'link')
  saver.save(1, {'x': jnp.arange(3.0)})
  saver.check_newest()
  saver.close()
  assert (tmp_path / 'a[1]' / 'step_00000001' / 'COMMITTED').exists()


def test_without_the_index_of_arrays_nothing_is_committed(
  tmp_path, monkeypatch
):
  """Whatever makes Orbax skip the merge, the save is a failed one."""
  monkeypatch.setattr(files, 'check_directory', lambda directory: None)
  saver = Checkpointer(tmp_path / 'a[1]')
  saver.save(1, {'x': jnp.ones(3)})
  with pytest.raises(CheckpointError, match=r'checkpoint 1 .*manifest\.ocdbt'):
    saver.wait()
  assert saver.steps() == []
  saver.close()


def test_a_step_committed_without_the_index_is_passed_over(
  tmp_path, monkeypatch, caplog
):
  """An earlier version wrote it: the step before it is restored."""
  saver = Checkpointer(tmp_path)
  saver.save(1, {'x': jnp.ones(3)})
  saver.wait()
  with monkeypatch.context() as patch:
    patch.setattr(files, '_missing', lambda names: '')
    names = files.files
    patch.setattr(
      files, 'files', lambda root: [n for n in names(root) if n != files.INDEX]
    )
    saver.save(2, {'x': jnp.ones(3)})
    saver.wait()
  assert Checkpointer(tmp_path).latest() == 1
  assert 'manifest.ocdbt was not written' in caplog.text
  saver.close()


@pytest.mark.parametrize('policy', ['stop', 'warn'])
def test_the_last_step_is_read_back(tmp_path, policy, caplog):
  """Damage between the save and the end of the run is found at its end."""
  saver = Checkpointer(tmp_path, on_save_error=policy)
  saver.check_newest()
  for step in (1, 2):
    saver.save(step, {'x': jnp.ones(3), 'y': np.zeros(0)})
  saver.check_newest()
  (tmp_path / 'step_00000002' / 'host.json').write_text('{ }')
  if policy == 'stop':
    with pytest.raises(CheckpointError, match=r'checkpoint 2 .*host\.json'):
      saver.check_newest()
  else:
    saver.check_newest()
    assert 'host.json' in caplog.text
  saver.close()
