"""Episodes on 8 devices and in microbatches equal those of one device."""

import dataclasses

import jax
import numpy as np
import pytest

from configs import keydoor
from configs.methods import gigpo, turn_ppo
from rl_jax.overrides import override
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop

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
