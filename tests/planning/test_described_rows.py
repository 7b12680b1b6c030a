"""Rows that pieces miss are described by the task, in shapes only."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.pieces import row_inputs
from rl_jax.planning import abstract_run, described_rows
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform


@pytest.fixture
def rows(toy):
  """Shapes of 2 prompts x 2 rows of 3 tokens."""
  traj = toy.trajectories(np.ones((4, 3)), group_size=2)
  place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
  return abstract_run.abstract(traj, place)


def shapes(rows, *keys):
  """The result of a program that reads the keys."""

  def reads(traj):
    return [row_inputs.read(traj, key) for key in keys]

  def lower(traj):
    return jax.jit(reads).lower(traj)

  return [x.shape for x in described_rows.lowered(lower, rows).out_info]


def test_values_of_rows_prompts_and_tokens_are_taken_to_be_there(rows):
  found = shapes(rows, 'cost_B', 'reference_reward_NM', 'span_BT', 'cost_B')
  assert found == [(4,), (2, 1), (4, 3), (4,)]


def test_labels_of_aspects_are_one_for_each_value_head(toy):
  """Whatever the model has besides: the update checks their number."""
  method = toy.get_method('aspect_reward_model')
  given = bandit.get_config(method)
  config = dataclasses.replace(
    given,
    model=dataclasses.replace(given.model, value_head=True, num_values=3),
  )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  model = policy_lib.planned_model(config.model, config.task, Platform())
  update = abstract_run.AbstractRun(config, model, mesh).lower()['update']
  _, metrics = update.out_info
  assert method.num_values == 2
  assert {'value/error_0', 'value/error_1'} <= {*metrics}


def test_other_axes_are_named(rows):
  with pytest.raises(row_inputs.MissingInputError, match='cut_BC') as error:
    shapes(rows, 'cost_B', 'cut_BC')
  assert isinstance(error.value, ValueError) and error.value.key == 'cut_BC'


def test_components_that_pieces_name_are_rewards(toy, rows):
  """Beside those that have a weight."""
  config = bandit.get_config(toy.get_method('rm_ensemble'))
  (piece,) = config.method.shaping
  found = described_rows.with_rewards(config, rows).rewards
  assert piece.components == ('outcome', 'format')
  assert {*found} == {'outcome', 'format'}
  assert found[piece.components[0]].dtype == jnp.float32
