"""A full disk during a run prevents saves and damages none."""

import gc
import importlib.util
import pathlib
import resource
import sys

import jax
import numpy as np
import pytest

from configs.methods import grpo
from configs.worlds import bandit
from rl_jax.overrides import override
from rl_jax.records.checkpoints.checkpointer import (
  Checkpointer,
  CheckpointError,
)
from rl_jax.runs import loop
from rl_jax.runtime import mesh

PATH = pathlib.Path(__file__).with_name('kill_resume.py')
SPEC = importlib.util.spec_from_file_location('kill_resume_disk', PATH)
kill_resume = importlib.util.module_from_spec(SPEC)
sys.modules['kill_resume_disk'] = kill_resume
SPEC.loader.exec_module(kill_resume)


def make_trainer(workdir, policy, iterations):
  config = bandit.get_config(grpo.get_method())
  for path, text in (
    ('iterations', str(iterations)),
    ('evaluation.every', '0'),
    ('checkpoint.every', '1'),
    ('model.config.width', '256'),  # every save is far larger than the limit
    ('model.config.mlp_size', '512'),
    ('checkpoint.on_save_error', policy),
  ):
    config = override(config, path, text)
  return loop.Trainer(config, str(workdir))


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Error writing persistent compilation cache')
@pytest.mark.parametrize(
  ('policy', 'limit'), [('stop', 60_000), ('warn', 60_000), ('warn', 100)]
)
def test_a_full_disk_in_a_whole_run(tmp_path, policy, limit, monkeypatch):
  """E0: the kernel refuses large files after iteration 2; then it does not.

  With 100 bytes also metrics, responses and TensorBoard files are refused.
  The run stops or continues as configured; step 2 stays valid, and the run that
  is continued with space equals one that always had it.
  """
  # Orbax leaves the coroutines of failed writes unawaited.
  monkeypatch.setattr(sys, 'unraisablehook', lambda unraisable: None)
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    whole = make_trainer(tmp_path / 'whole', policy, 5)
    whole.run()
    full = tmp_path / 'full'
    make_trainer(full, policy, 2).run()
    trainer = make_trainer(full, policy, 4)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
      if policy == 'stop':
        with pytest.raises(CheckpointError, match='checkpoint 3 .* step 2'):
          trainer.run()
      else:
        trainer.run()
        assert trainer.counters.iteration == 4
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, before)
    saver = Checkpointer(full / 'checkpoints')
    assert saver.latest() == 2
    saver.close()
    again = make_trainer(full, policy, 5)
    assert again.counters.iteration == 2
    again.run()
    jax.tree.map(np.testing.assert_array_equal, again.state, whole.state)
  records = [kill_resume.read_record(tmp_path / n) for n in ('whole', 'full')]
  assert kill_resume.differences(*records) == []
  gc.collect()
