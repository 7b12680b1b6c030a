"""Odd names and odd manifests are passed over; the step before is used."""

import zlib

import jax.numpy as jnp
import pytest

from rl_jax.records.checkpoints.checkpointer import Checkpointer


@pytest.fixture
def saved(tmp_path):
  saver = Checkpointer(tmp_path)
  for step in (1, 2):
    saver.save(step, {'x': jnp.ones(3)})
  saver.wait()
  yield saver
  saver.close()


@pytest.mark.parametrize(
  'name', ['step_²', 'step_٣', 'step_', '7', 'step_3', 'step_00000003.tmp']
)
def test_a_stray_directory_is_no_step(tmp_path, saved, name):
  (tmp_path / name).mkdir()
  assert saved.latest() == 2 and saved.steps() == [1, 2]


@pytest.mark.parametrize(
  'body',
  ['[]', 'null', '{}', '{"format": "1"}', '{"format": 1, "files": 3}', '{'],
)
def test_odd_json_in_the_manifest_falls_back(tmp_path, saved, body):
  """With a CRC that fits."""
  path = tmp_path / 'step_00000002' / 'COMMITTED'
  path.write_text(f'{body}\n{zlib.crc32(body.encode())}\n')
  assert saved.latest() == 1
  assert saved.best_step() is None
