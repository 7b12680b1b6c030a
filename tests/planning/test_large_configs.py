"""The configurations for accelerators build, and their update lowers.

No weights and no devices: shapes on an abstract mesh of 8 devices.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest

from experiments.flags import configuration
from rl_jax import config as config_lib
from rl_jax.learning import update
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.statistics import Forward
from rl_jax.models import presets, transformer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import TrainState, Trajectories

PRESET = {
  'smollm2_gsm8k': 'SmolLM2-135M',
  'qwen2p5_0p5b_gsm8k': 'Qwen2.5-0.5B',
  'qwen2p5_1p5b_gsm8k': 'Qwen2.5-1.5B',
  'qwen2p5_7b_gsm8k': 'Qwen2.5-7B',
  'qwen3_0p6b_gsm8k': 'Qwen3-0.6B',
  'qwen3_30b_a3b_gsm8k': 'Qwen3-30B-A3B',
}


def _on(mesh, tree, axes=()):
  """Shapes of a tree with a sharding on the abstract mesh."""
  place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree
  )


def _rollout(config) -> Trajectories:
  """Shapes of one scored rollout with advantages."""
  rollout = config.rollout
  N, G = rollout.num_prompts, rollout.group_size
  P, T = rollout.max_prompt_tokens, rollout.max_response_tokens

  def make():
    zeros = functools.partial(jnp.zeros, dtype=jnp.float32)
    ids = jnp.zeros((N,), jnp.int32)
    return Trajectories(
      prompt_NP=jnp.zeros((N, P), jnp.int32),
      prompt_mask_NP=zeros((N, P)),
      prompt_id_N=ids,
      group_size=G,
      response_BT=jnp.zeros((N * G, T), jnp.int32),
      kind_BT=jnp.zeros((N * G, T), jnp.int32),
      length_B=jnp.zeros((N * G,), jnp.int32),
      finished_B=jnp.zeros((N * G,), bool),
      row_id_B2=jnp.zeros((N * G, 2), jnp.int32),
      policy_version_B=jnp.zeros((N * G,), jnp.int32),
      mask_BT=zeros((N * G, T)),
      valid_B=zeros((N * G,)),
      weight_B=zeros((N * G,)),
      logp_behaviour_BT=zeros((N * G, T)),
      logp_old_BT=zeros((N * G, T)),
      entropy_BT=zeros((N * G, T)),
      reward_B=zeros((N * G,)),
      advantages_BT=zeros((N * G, T)),
    )

  return jax.eval_shape(make)


@pytest.mark.parametrize(
  'name',
  [
    pytest.param(name, marks=pytest.mark.slow) if 'a3b' in name else name
    for name in sorted(PRESET)
  ],
)
def test_builds_and_lowers_on_an_abstract_mesh(name):
  """Batch arithmetic divides, and the sharded update of DAPO lowers."""
  config = configuration.build(
    name, 'dapo', ['mesh.fsdp=4', 'mesh.tensor=2', 'rollout.num_prompts=32']
  )
  config_lib.validate(config)
  model = presets.PRESETS[PRESET[name]]
  assert config.model.config == model  # what experiments.plan plans with
  chosen = dict(compute_dtype='bfloat16', remat=True, expert_products='chosen')
  model = dataclasses.replace(model, **chosen)
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig(fsdp=4, tensor=2))
  specs = transformer.specs(model)
  params = jax.tree.map(
    lambda spec, place: jax.ShapeDtypeStruct(
      spec.shape, jnp.dtype(spec.dtype), sharding=place
    ),
    specs,
    mesh_lib.param_shardings(specs, mesh),
    is_leaf=lambda x: hasattr(x, 'logical_axes'),
  )
  optimizer = make_optimizer(config.optimizer)
  zero = jnp.zeros((), jnp.int32)
  state = TrainState(
    step=_on(mesh, zero),
    params=params,
    opt_state=_on(mesh, jax.eval_shape(optimizer.init, params)),
    method_state={},
    skipped=_on(mesh, zero),
  )
  method = jax.eval_shape(config.method.as_arrays)
  microbatches = config.rollout.num_prompts // 4
  step = jax.jit(
    functools.partial(
      update.update_minibatch,
      Forward(model=model, microbatches=microbatches),
      optimizer=optimizer,
      reuse_scores=False,
    ),
    donate_argnums=0,
  )
  with jax.sharding.use_abstract_mesh(mesh):
    traced = step.trace(
      state,
      update.Batch(
        frozen={},
        method=_on(mesh, method),
        traj=_on(mesh, _rollout(config)),
        key=_on(mesh, jax.eval_shape(lambda: jax.random.key(0))),
      ),
      _on(mesh, jax.ShapeDtypeStruct((32,), jnp.int32)),
    )
    text = traced.lower(lowering_platforms=('cuda',)).as_text()
  largest = (
    config.rollout.num_prompts
    * config.rollout.group_size
    * (config.rollout.max_response_tokens)
  )
  # No [B, T, V] array exists in the program.
  assert f'{largest}x{model.vocab_size}x' not in text
  assert f'256x512x{model.vocab_size}x' not in text
  assert 'sharding' in text
  assert ('ragged_dot' in text) == bool(model.num_experts)
