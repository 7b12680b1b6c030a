"""A configuration refuses mistakes before anything is compiled."""

import dataclasses

import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax import config as config_lib
from rl_jax import overrides
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import Credit
from rl_jax.runtime.mesh import MeshConfig

REINFORCE = Method(losses=(losses.Reinforce(),), aggregation=TokenMean())


@dataclasses.dataclass(frozen=True)
class Yours:
  """A class of the user."""


def changed(method=REINFORCE, *, value_head=False, mesh=None, **sizes):
  """The bandit with other sizes; names of update fields go to update."""
  config = bandit.get_config(method)
  update = {
    k: sizes.pop(k)
    for k in ('minibatch_prompts', 'microbatch_prompts', 'microbatch_rows')
    if k in sizes
  }
  return dataclasses.replace(
    config,
    model=dataclasses.replace(config.model, value_head=value_head),
    mesh=MeshConfig(**(mesh or {})),
    rollout=dataclasses.replace(config.rollout, **sizes),
    update=UpdateConfig(**update),
  )


def test_the_shipped_configuration_is_valid():
  """Nothing below fails for another reason than the one it names."""
  config_lib.validate(changed())


@pytest.mark.parametrize(
  ('sizes', 'message'),
  [
    (
      {'num_prompts': 8, 'minibatch_prompts': 3},
      'update.minibatch_prompts = 3 must divide rollout.num_prompts = 8',
    ),
    (
      {'num_prompts': 8, 'microbatch_prompts': 3},
      'update.microbatch_prompts = 3 must divide the minibatch = 8',
    ),
    (
      {'num_prompts': 8, 'minibatch_prompts': 4, 'microbatch_prompts': 8},
      'update.microbatch_prompts = 8 must divide the minibatch = 4',
    ),
    (
      {'num_prompts': 8, 'microbatch_rows': 5},
      'update.microbatch_rows = 5 must divide rollout.group_size = 8',
    ),
    (
      {'num_prompts': 8, 'microbatch_prompts': 4, 'mesh': {'data': 8}},
      r'mesh.data \* mesh.fsdp = 8 must divide the microbatch = 4',
    ),
    (
      {'num_prompts': 6, 'mesh': {'data': 2, 'fsdp': 2}},
      r'mesh.data \* mesh.fsdp = 4 must divide the microbatch = 6',
    ),
    (
      {'num_prompts': 8, 'mesh': {'data': 4}, 'slots': 6},
      'mesh.sequence = 4 must divide rollout.slots = 6',
    ),
    (
      {'max_response_tokens': 6, 'mesh': {'sequence': 4}},
      'mesh.sequence = 4 must divide rollout.max_response_tokens = 6',
    ),
  ],
)
def test_batch_arithmetic_names_both_numbers(sizes, message):
  """Sizes that do not divide are an error, not rounded."""
  with pytest.raises(ValueError, match=message):
    config_lib.validate(changed(**sizes))


def test_all_limits_that_do_not_fit_are_said_at_once():
  """One error for one run, whose user mends all of them."""
  with pytest.raises(ValueError) as error:
    config_lib.validate(
      changed(
        num_prompts=8,
        minibatch_prompts=3,
        max_response_tokens=7 * 2**30 // 8 + 6,
        mesh={'sequence': 4},
      )
    )
  for part in (
    'update.minibatch_prompts = 3 must divide rollout.num_prompts = 8; ',
    'mesh.sequence = 4 must divide rollout.max_response_tokens = ',
    'tokens in a round, more than ',
  ):
    assert part in str(error.value)


def test_statistics_of_groups_need_whole_ones(toy):
  """Rows of a group that are compared by place are in one microbatch."""
  method = toy.get_method('tw_grpo')
  for rows in (2, 4):
    with pytest.raises(ValueError, match='compares all rows of a group'):
      sizes = {'group_size': 4, 'microbatch_rows': rows}
      config_lib.validate(changed(method, **sizes))
  config_lib.validate(changed(method, group_size=4))


def test_tensor_parallelism_splits_no_rows():
  """Only data and fsdp must divide the microbatch."""
  config_lib.validate(changed(num_prompts=6, mesh={'tensor': 4}))


@pytest.mark.parametrize('name', ['grpo', 'rloo', 'dapo', 'clip_cov'])
def test_a_group_of_one_has_nothing_to_compare(toy, name):
  """The error names the piece, the least size and the given one."""
  with pytest.raises(ValueError, match='group_size >= 2, got 1'):
    config_lib.validate(changed(toy.get_method(name), group_size=1))
  config_lib.validate(changed(toy.get_method(name), group_size=2))


def test_reinforce_needs_no_group():
  """The limit belongs to the pieces, not to the program."""
  config_lib.validate(changed(group_size=1))


def test_a_missing_value_head_says_what_to_set(toy):
  """PPO reads values; with the head it is accepted."""
  ppo = toy.get_method('ppo')
  with pytest.raises(ValueError, match='set model.value_head=True'):
    config_lib.validate(changed(ppo))
  config_lib.validate(changed(ppo, value_head=True))


@dataclasses.dataclass(frozen=True)
class ThreeReturns(Credit):
  """A credit that reads three outputs of the value head."""

  needs = ('value_heads',)
  num_values = 3


def test_missing_outputs_of_the_value_head_say_what_to_set(toy):
  """More than are read are accepted: a baseline may read fewer."""
  method = dataclasses.replace(toy.get_method('ppo'), credit=(ThreeReturns(),))
  config = changed(method, value_head=True)
  for count in (1, 2, 3, 4):
    model = dataclasses.replace(config.model, num_values=count)
    one = dataclasses.replace(config, model=model)
    if count < 3:
      with pytest.raises(ValueError, match='set model.num_values=3'):
        config_lib.validate(one)
    else:
      config_lib.validate(one)


def test_a_method_without_anything_to_minimise_is_refused():
  """No policy loss, or no aggregation."""
  with pytest.raises(ValueError, match='no loss of role "policy"'):
    config_lib.validate(changed(Method(aggregation=TokenMean())))
  with pytest.raises(ValueError, match='aggregation is missing'):
    config_lib.validate(changed(Method(losses=(losses.Reinforce(),))))


def test_an_average_of_bfloat16_weights_is_refused(toy):
  """Its small changes would be rounded away; a frozen reference is none."""
  method = toy.get_method('grpo')
  config = changed(method)
  half = dataclasses.replace(config.model, param_dtype='bfloat16')
  config = dataclasses.replace(config, model=half)
  config_lib.validate(config)
  moving = dataclasses.replace(method, reference=Average(decay=0.99))
  with pytest.raises(ValueError, match="'bfloat16', but small .* reference"):
    config_lib.validate(dataclasses.replace(config, method=moving))


def test_a_schedule_ends_with_the_last_iteration():
  """8 prompts in minibatches of 4, 3 epochs, 5 iterations: 30 steps."""
  config = changed(num_prompts=8, minibatch_prompts=4)
  config = dataclasses.replace(
    config,
    iterations=5,
    update=dataclasses.replace(config.update, epochs=3),
    optimizer=OptimizerConfig(schedule='cosine'),
  )
  assert config_lib.optimizer_of(config).total_steps == 30
  given = OptimizerConfig(schedule='cosine', total_steps=7)
  for optimizer in (given, OptimizerConfig()):
    config = dataclasses.replace(config, optimizer=optimizer)
    assert config_lib.optimizer_of(config) is optimizer


@pytest.mark.parametrize(
  ('fields', 'devices', 'data'),
  [
    ({}, 1, 1),
    ({}, 4, 4),
    (dict(num_prompts=12), 8, 6),  # two devices stay idle
    (dict(num_prompts=12, microbatch_prompts=3), 8, 3),
    (dict(num_prompts=7), 8, 7),
    (dict(num_prompts=7), 4, 1),
    (dict(num_prompts=16, slots=4), 8, 4),
  ],
)
def test_a_mesh_takes_all_devices_that_share_the_batch(fields, devices, data):
  """Without a word of the user; what is given stays."""
  config = changed(**fields)
  found = config_lib.on_devices(config, devices)
  assert found.mesh == MeshConfig(data=data)
  config_lib.validate(found)
  config_lib.validate(config)
  given = dataclasses.replace(config, mesh=MeshConfig(data=3))
  assert config_lib.on_devices(given, devices) is given
  split = dataclasses.replace(config, mesh=MeshConfig(fsdp=2, tensor=2))
  assert config_lib.on_devices(split, 4).mesh.data == 1


@pytest.mark.parametrize(
  ('path', 'value', 'message'),
  [
    ('seed', 1.5, r'seed: expected int, got 1.5 \(float\)'),
    ('iterations', '10', r"iterations: expected int, got '10' \(str\)"),
    ('rollout', None, r'rollout: expected RolloutConfig, got None'),
    ('rollout.num_prompts', '8', r"num_prompts: expected int, got '8' \(str\)"),
    ('rollout.stop', 'abc', r"rollout.stop: expected tuple, got 'abc'"),
    ('rollout.stop', ['abc'], r"rollout.stop: expected tuple, got \['abc'\]"),
    ('verifier.on_device', 'no', "on_device: expected bool, got 'no'"),
    ('optimizer.learning_rate', '1e-3', 'learning_rate: expected float, got'),
    ('optimizer.learning_rate', True, 'learning_rate: expected float, got'),
    ('stopping.metric', 3, 'stopping.metric: expected str or NoneType, got 3'),
    ('judges', (losses.PPOClip(),), 'which is not a Judge'),
    ('judges', (3,), r'judges: expected tuple\[Judge, ...\], got \(3,\)'),
    ('method.losses', losses.PPOClip(), 'losses: expected (a )?tuple, got'),
  ],
)
def test_a_value_of_another_type_is_refused(path, value, message):
  """Also in Python and in JSON, where nothing converts a text."""
  with pytest.raises(ValueError, match=message):
    config_lib.validate(replaced(changed(), path, value))


@pytest.mark.parametrize(
  ('path', 'value'),
  [
    ('optimizer.learning_rate', 1),
    ('optimizer.learning_rate', np.float64(0.5)),
    ('optimizer.clip_norm', None),
    ('rollout.stop', ('abc',)),
    ('rollout.turns', Yours()),
    ('judges', (Yours(),)),
  ],
)
def test_what_stands_for_a_type_passes(path, value):
  """An int as a float, and classes of the user."""
  section = path.rpartition('.')[0]
  config = replaced(changed(), path, value)
  overrides.check_types(getattr(config, section) if section else config)


def replaced(config, path, value):
  """The configuration with another value at a dotted path."""
  field, _, below = path.partition('.')
  if below:
    value = replaced(getattr(config, field), below, value)
  return dataclasses.replace(config, **{field: value})


@pytest.mark.parametrize('task', [None, 3, losses.PPOClip()])
def test_what_is_no_task_is_refused(task):
  """By what it lacks, not by a traceback."""
  config = bandit.get_config(REINFORCE)
  with pytest.raises(ValueError, match=r'does not derive from rl_jax\.tasks'):
    config_lib.validate(dataclasses.replace(config, task=task))
