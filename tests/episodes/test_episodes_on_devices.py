"""Episodes on 8 devices and in microbatches equal those of one device."""

import dataclasses

import jax
import numpy as np
import pytest

from configs.methods import gigpo, turn_ppo
from configs.worlds import keydoor
from rl_jax import decoding, models
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.slot_engine import RunningSlots
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.overrides import override
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.types import ENVIRONMENT

pytestmark = [pytest.mark.devices, pytest.mark.usefixtures('no_mesh_left')]


def train(workdir, method, iterations=1, **changes):
  """(metrics, rollouts) of 8 x 2 episodes of 3 turns."""
  config = keydoor.get_config(method)
  small = dataclasses.replace(
    config.model.config, num_layers=1, width=16, mlp_size=16
  )
  source = dataclasses.replace(config.model, config=small)
  if method.value_target is not None:
    source = dataclasses.replace(source, value_head=True)
  config = dataclasses.replace(config, model=source, iterations=iterations)
  fields = {
    'rollout__num_prompts': 8,
    'rollout__group_size': 2,
    'rollout__max_response_tokens': 17,
    'rollout__turns__max_turns': 3,
    'rollout__turns__max_turn_tokens': 2,
    'update__minibatch_prompts': None,
    'evaluation__every': 0,
    **changes,
  }
  for path, value in fields.items():
    config = override(config, path.replace('__', '.'), repr(value))
  loop.Trainer(config, str(workdir)).run()
  return [
    read_jsonl(workdir / f'{name}.jsonl') for name in ('metrics', 'rollouts')
  ]


def assert_equal_runs(one, other):
  """E2 what was played, E1 metrics."""
  for line, same in zip(one[1], other[1], strict=True):
    assert line['response'] == same['response']
    assert line['turns'] == same['turns']
  for row, same in zip(one[0], other[0], strict=True):
    assert row.keys() == same.keys()
    for name in row.keys() - {n for n in row if n.startswith('time/')}:
      np.testing.assert_allclose(
        row[name], same[name], 1e-5, 2e-5, err_msg=name
      )


@pytest.mark.slow
@pytest.mark.parametrize('method', [gigpo, turn_ppo])
def test_a_run_is_that_of_one_device(tmp_path, monkeypatch, method):
  """data, fsdp and tensor are 2 each, and one group a microbatch."""
  method = method.get_method()
  first = jax.devices()[:1]
  with monkeypatch.context() as patch:
    patch.setattr(jax, 'devices', lambda: first)
    one = train(tmp_path / 'one', method, 2)
  axes = {f'mesh__{name}': 2 for name in ('data', 'fsdp', 'tensor')}
  assert_equal_runs(one, train(tmp_path / 'many', method, 2, **axes))
  pieces = {'mesh__data': 8}
  assert_equal_runs(one, train(tmp_path / 'rows', method, 2, **pieces))
  with monkeypatch.context() as patch:
    patch.setattr(jax, 'devices', lambda: first)
    pieces = {'update__microbatch_prompts': 2}
    assert_equal_runs(one, train(tmp_path / 'pieces', method, 2, **pieces))


def test_every_shard_narrows():
  """E2: of two rows on each of 8 devices one has a second turn."""
  one, many = (second_turns(jax.devices()[:count]) for count in (1, 8))
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(
      getattr(one, name), getattr(many, name), err_msg=name
    )
  np.testing.assert_allclose(one.logp_BT, many.logp_BT, atol=1e-5)
  assert (one.kind_BT[1] == ENVIRONMENT).sum() == 3
  assert not (one.kind_BT[0] == ENVIRONMENT).any()


def second_turns(devices):
  """Rows of 8 prompts on the host, of which every other continues."""
  model = models.ModelConfig(
    vocab_size=13,
    num_layers=1,
    width=16,
    num_heads=2,
    num_kv_heads=1,
    head_size=8,
    mlp_size=24,
  )
  rng = np.random.default_rng(0)
  prompt_NP = rng.integers(4, 13, (8, 4)).astype(np.int32)
  said = {row: (rng.integers(4, 13, 3), False) for row in range(1, 16, 2)}
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=len(devices)), devices)
  with jax.set_mesh(mesh):
    engine = make_engine(
      model,
      decoding.SamplingConfig(eos_ids=(2, 3)),
      EngineConfig(
        group_size=2,
        max_response_tokens=12,
        turns=TurnConfig(
          max_turns=2, max_turn_tokens=4, max_observation_tokens=3
        ),
      ),
      mesh,
    )
    params = params_lib.init_params(model, jax.random.key(0), mesh)
    traj = engine.start(
      prompt_NP, np.ones((8, 4), np.float32), np.arange(8), 0, 0
    )
    key = processes.put(jax.random.key(1), mesh_lib.replicated(mesh))
    share = 16 // len(devices)
    engine.slots.widths, engine.slots.feeds = (share, share // 2), (share // 2,)
    slots = RunningSlots(engine.slots, params, traj, key, 3)
    ended = {row: one.ended for row, one in slots.first.read().items()}
    ended |= draw(slots, [row for row in range(16) if not ended[row]])
    assert all(ended.values())
    slots.feed(said)
    burst = slots.sample([*said])
    assert len(burst.rows) == 8  # half of the rows, on each device
    assert all(one.ended for one in burst.read().values())
    return jax.device_get(slots.table.rows.replace(key_B=None))


def draw(slots, rows):
  """Returns whether the turns of these rows have ended, after a burst."""
  return {row: one.ended for row, one in slots.sample(rows).read().items()}
