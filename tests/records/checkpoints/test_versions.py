"""A checkpoint names the software that wrote it."""

import logging

import jax

from rl_jax.records.checkpoints import versions
from rl_jax.records.checkpoints.checkpointer import Checkpointer, abstract_tree


def test_versions_name_the_packages():
  """And the commit, where the code is a clone; never an exception."""
  found = versions.current()
  assert found['jax'] == jax.__version__ and found['jaxlib']
  assert {'rl_jax', 'optax', 'orbax-checkpoint', 'commit'} <= found.keys()


def test_only_what_both_sides_know_is_compared():
  """Older checkpoints name fewer packages; an unknown one makes no
  difference.
  """
  now = versions.current()
  assert versions.differences(now) == versions.differences({}) == []
  saved = {**now, 'jax': '0.1', 'rl_jax': 'unknown', 'extra': '7'}
  assert versions.differences(saved) == [f'jax 0.1 -> {now["jax"]}']


def test_another_version_is_read_with_a_warning(tmp_path, caplog, monkeypatch):
  """Not an error. Without a warning for the same version."""
  tree = {'x': jax.numpy.arange(3)}
  now = versions.current()
  monkeypatch.setattr(versions, 'current', lambda: {**now, 'jax': '0.1'})
  saver = Checkpointer(tmp_path)
  saver.save(1, tree)
  saver.wait()
  with caplog.at_level(logging.WARNING, 'absl'):
    assert saver.restore(abstract_tree(tree)).step == 1
    assert not caplog.records
    monkeypatch.undo()
    restored = saver.restore(abstract_tree(tree))
  assert restored.tree['x'].tolist() == [0, 1, 2]
  (record,) = caplog.records
  assert f'jax 0.1 -> {now["jax"]}' in record.getMessage()
  saver.close()
