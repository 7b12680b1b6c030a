"""Samplers and trainer on different devices, one iteration apart."""

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.overrides import override_all
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import assembly, loop

pytestmark = pytest.mark.usefixtures('no_mesh_left')

APART = {'mesh.data': '4', 'mesh.rollout_devices': '4'}


def make_config(method, **changes):
  own = {
    'evaluation.every': '0',
    'verifier.num_workers': '0',
    'iterations': '4',
    'rollout.num_prompts': '8',
    'rollout.max_response_tokens': '3',
    'rollout.staleness': '1',
    'guards.max_logp_gap': 'null',
    **changes,
  }
  return override_all(bandit.get_config(method), own.items())


def rows(folder, name):
  """Lines without times and values of tokens."""
  return [
    {k: v for k, v in row.items() if k != 'tokens' and 'time/' not in k}
    for row in read_jsonl(folder / f'{name}.jsonl')
  ]


@pytest.mark.devices
@pytest.mark.slow
def test_other_devices_sample_the_same(toy, tmp_path, monkeypatch):
  """E2: as on one mesh; E0: 2 + 2 iterations equal 4.

  With dynamic sampling: what the selector was asked ahead it was not asked.
  The next rollout is dispatched before the update.
  """
  method, order, trainers = toy.get_method('dapo'), [], {}

  def run(name, **changes):
    config = make_config(method, **changes)
    trainer = trainers[name] = loop.Trainer(config, str(tmp_path / name))
    collector = trainer.parts.collector
    for call in ('begin', 'collect'):
      own = getattr(collector, call)
      monkeypatch.setattr(
        collector,
        call,
        lambda *x, own=own, call=call: (order.append(call), own(*x))[1],
      )
    trainer.run()

  run('one', **{'mesh.data': '8'})
  assert order == ['collect'] * 4
  order.clear()
  run('whole', **APART)
  assert order == [*['collect', 'begin'] * 3, 'collect']
  run('parts', **APART, iterations='2')
  run('parts', **APART)
  for one, other in zip(
    rows(tmp_path / 'one', 'rollouts'),
    rows(tmp_path / 'whole', 'rollouts'),
    strict=True,
  ):
    assert one == other
  for one, other in zip(
    rows(tmp_path / 'one', 'metrics'),
    rows(tmp_path / 'whole', 'metrics'),
    strict=True,
  ):
    assert one['rollout/steps_behind'] == other['rollout/steps_behind']
    for key in one:
      np.testing.assert_allclose(one[key], other[key], 1e-5, 1e-5, err_msg=key)
  for name in ('rollouts', 'metrics'):
    assert rows(tmp_path / 'whole', name) == rows(tmp_path / 'parts', name)
  whole, parts = trainers['whole'], trainers['parts']
  jax.tree.map(
    np.testing.assert_array_equal,
    *(
      (t.state, [params for params, _ in t.lagged.history])
      for t in (whole, parts)
    ),
  )
  (kept, _), *_ = whole.lagged.history
  devices = {d for x in jax.tree.leaves(kept) for d in x.devices()}
  assert devices == set(jax.devices()[4:])
  devices = {d for x in jax.tree.leaves(whole.state) for d in x.devices()}
  assert devices == set(jax.devices()[:4])


def test_what_cannot_be_apart_is_refused(toy):
  """Before anything is compiled, with what to set."""
  method = toy.get_method('grpo')
  validate(make_config(method, **APART))
  for changes, message in (
    ({'rollout.staleness': '0'}, 'rollout_devices = 4 with rollout.staleness'),
    ({'rollout.num_prompts': '6'}, 'rollout_devices = 4 must divide'),
    ({'rollout.parts': '2'}, 'rollout_devices = 4 with rollout.parts'),
    (
      {'rollout.speculative': 'PromptLookup()'},
      'rollout_devices = 4 with rollout.speculative',
    ),
  ):
    with pytest.raises(ValueError, match=message):
      validate(make_config(method, **{**APART, 'mesh.data': '2', **changes}))
  most = {'mesh.rollout_devices': '64', 'rollout.num_prompts': '64'}
  with pytest.raises(ValueError, match='fewer than all of one process'):
    assembly.make_mesh(make_config(method, **most))
