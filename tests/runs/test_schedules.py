"""Schedules of released code: rows as minibatches, warm-up, larger rounds."""

import dataclasses

import jax
import numpy as np
import pytest

from rl_jax.config import optimizer_of, steps_of_rollout, validate
from rl_jax.learning.optimizers import schedule
from rl_jax.learning.update import UpdateConfig
from rl_jax.pieces.aggregation import GroupTokenMean
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.runs.scanned import program
from rl_jax.runs.stages import Functions

pytestmark = pytest.mark.usefixtures('no_mesh_left')


@pytest.fixture
def rows_config(make_config, toy):
  """DAPO on a bandit: rounds of 6 prompts, minibatches of 4 of 16 rows."""
  return make_config(
    toy.get_method('dapo'),
    iterations='3',
    rollout__num_prompts='4',
    rollout__group_size='4',
    rollout__round_prompts='6',
    update__minibatch_rows='4',
    update__microbatch_rows='2',
    optimizer__warmup_steps='2',
    optimizer__warmup_unit='rollouts',
    method__aggregation='SeqMeanTokenMean()',
  )


def test_a_run_trains_and_resumes(rows_config, tmp_path):
  """E0: 2 + 1 iterations are 3, of 4 optimizer steps each."""
  whole = loop.Trainer(rows_config, str(tmp_path / 'whole'))
  whole.run()
  rows = read_jsonl(str(tmp_path / 'whole' / 'metrics.jsonl'))
  assert int(whole.state.step) == 12 and int(whole.state.skipped) == 0
  assert rows[-1]['train/skipped'] == 0
  parts = str(tmp_path / 'parts')
  loop.Trainer(dataclasses.replace(rows_config, iterations=2), parts).run()
  resumed = loop.Trainer(rows_config, parts)
  resumed.run()
  jax.tree.map(np.testing.assert_array_equal, resumed.state, whole.state)


def test_every_row_is_in_one_minibatch_of_an_epoch():
  """Not the rows of a group together, and another order in each epoch."""
  functions = Functions(
    **{
      field.name: None
      for field in dataclasses.fields(Functions)
      if field.name not in ('groups_per_minibatch', 'epochs', 'by_row')
    },
    groups_per_minibatch=4,
    epochs=2,
    by_row=True,
  )
  order_KM = functions.minibatches(0, 3, 16)
  assert order_KM.shape == (8, 4)
  for epoch in (order_KM[:4], order_KM[4:]):
    assert sorted(epoch.ravel()) == list(range(16))
  assert (order_KM[:4] != order_KM[4:]).any()
  assert any(len(set(rows // 4)) > 1 for rows in order_KM)


def test_warm_up_in_rollouts_is_one_in_their_steps(rows_config):
  """Two rollouts of four steps: the rate reaches its peak at step 8."""
  assert steps_of_rollout(rows_config) == 4
  found = optimizer_of(rows_config)
  assert found.warmup_steps == 8 and found.warmup_unit == 'steps'
  steps = dataclasses.replace(
    rows_config.optimizer, warmup_steps=8, warmup_unit='steps'
  )
  assert found == steps
  with pytest.raises(ValueError, match="warmup_unit = 'rollouts'"):
    schedule(rows_config.optimizer)


@pytest.mark.parametrize(
  ('section', 'fields', 'message'),
  [
    ('update', dict(minibatch_rows=5), 'minibatch_rows = 5 must divide'),
    ('update', dict(microbatch_rows=3), 'microbatch_rows = 3 must divide'),
    (
      'update',
      dict(minibatch_prompts=2),
      'minibatch_rows = 4 with update.minibatch_prompts = 2',
    ),
    ('rollout', dict(round_prompts=3), 'round_prompts = 3 is less than'),
    ('rollout', dict(round_prompts=8, parts=2), 'with rollout.parts'),
  ],
)
def test_sizes_that_do_not_fit_are_named(rows_config, section, fields, message):
  part = dataclasses.replace(getattr(rows_config, section), **fields)
  with pytest.raises(ValueError, match=message):
    validate(dataclasses.replace(rows_config, **{section: part}))


def test_methods_that_compare_rows_are_named(rows_config, make_config, toy):
  rows = UpdateConfig(minibatch_rows=4)
  for name, message in (('disco', 'with DisCO'), ('dpo', 'method.pairs')):
    config = make_config(toy.get_method(name))
    config = dataclasses.replace(config, update=rows)
    with pytest.raises(ValueError, match=message):
      validate(config)
  method = rows_config.method.replace(aggregation=GroupTokenMean())
  with pytest.raises(ValueError, match='with GroupTokenMean'):
    validate(dataclasses.replace(rows_config, method=method))
  plain = make_config(toy.get_method('grpo'), rollout__round_prompts='64')
  with pytest.raises(ValueError, match='without method.group_filter'):
    validate(plain)
  config = make_config(toy.get_method('grpo'))
  config = dataclasses.replace(config, update=rows)
  assert 'update.minibatch_rows' in (program.refusal(config) or '')
