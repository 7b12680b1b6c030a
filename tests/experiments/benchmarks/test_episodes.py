"""Tools that sleep, and the line of --stage=episodes."""

import random

import jax
import numpy as np
import pytest

from experiments.benchmarks import episodes
from experiments.benchmarks.episodes_simulation import Load
from rl_jax.models import presets
from rl_jax.runtime import mesh as mesh_lib


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


@pytest.mark.slow
def test_measured_and_simulated_have_the_same_keys():
  """Two batches of 2 x 2 rows; speeds are relative to turns in step."""
  load = Load(
    groups=2, group=2, turns=2, tokens=4, spread=0.0, observation=4, alike=0.0
  )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  cfg = presets.small(vocab_size=512, width=16, num_heads=2, head_size=8)
  with jax.set_mesh(mesh):
    found = episodes.measured(cfg, mesh, load, 'lognormal', 1.0, 2)
  assert found['measured'].keys() == found['simulated'].keys()
  for one in found['measured'].values():
    assert one['time'] > 0 and 0 < one['busy'] <= 1
  assert found['measured']['lockstep']['speed'] == 1
