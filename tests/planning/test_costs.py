"""FLOP and bytes of experts that tokens take, and of weights that are read."""

import dataclasses

import pytest

from configs.worlds import bandit
from rl_jax.models import ModelConfig, spec, specs
from rl_jax.models.source import ModelSource
from rl_jax.planning import costs, memory_plan, roofline
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

SHAPE = costs.Shape(2, 3, 5, 4)  # 2 prompts of 5, 6 rows of 4 tokens
EXPERTS = ModelConfig(
  vocab_size=300,
  num_layers=2,
  width=64,
  num_heads=4,
  num_kv_heads=2,
  head_size=16,
  mlp_size=32,
  num_experts=8,
  experts_per_token=2,
)


def test_flop_are_of_the_experts_that_a_token_takes():
  """The FLOP are those of one MLP of two experts' size, and of the router."""
  dense = dataclasses.replace(
    EXPERTS, num_experts=0, experts_per_token=0, mlp_size=2 * 32
  )
  router = 2 * 2 * 64 * 8 * (2 * 5 + 6 * 3)
  found = costs.model_flops(EXPERTS, SHAPE, 'score')
  assert found == router + costs.model_flops(dense, SHAPE, 'score')


def test_experts_that_no_row_takes_are_not_read():
  """One row takes 2 of 8 a step, six rows perhaps all."""
  expert = 3 * 64 * 32
  assert costs.resting_weights(EXPERTS) == 2 * 6 * expert
  assert costs.resting_weights(EXPERTS, 6) == 0
  one = dataclasses.replace(SHAPE, num_prompts=1, group_size=1)
  six = costs.decode_bytes(EXPERTS, SHAPE)['weights']
  # Three steps of float32.
  assert six - costs.decode_bytes(EXPERTS, one)['weights'] == (
    3 * 4 * 2 * 6 * expert
  )


def test_kernels_read_the_blocks_that_hold_tokens():
  """By hand: 129 steps of 6 rows read 1 block of 128, at the last one 2."""
  model = dataclasses.replace(
    EXPERTS,
    head_size=64,
    compute_dtype='bfloat16',
    attention='splash',
    platform=Platform('tpu'),
  )
  shape = dataclasses.replace(SHAPE, new_tokens=130)
  token = 2 * 2 * 2 * 64 * 2
  found = costs.decode_bytes(model, shape)
  prompts = 129 * 2 * 5 * token
  assert found['cache_read'] == prompts + 6 * token * (128 * 128 + 256)
  plain = dataclasses.replace(model, attention='plain')
  found = costs.decode_bytes(plain, shape)
  assert found['cache_read'] == prompts + 6 * token * 129 * 129


def test_what_is_needed_is_a_share(toy):
  """An update of 4 forward passes is 3/4 of the peak if nothing else binds."""
  config = bandit.get_config(toy.get_method('grpo'))
  config = dataclasses.replace(config, model=ModelSource(config=EXPERTS))
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig())
  model = dataclasses.replace(EXPERTS, remat=True, expert_products='chosen')
  plan = memory_plan.estimate(config, model, mesh)
  sent = {'generate': 0.0, 'update': 0.0}
  card = roofline.Card(1.0, 1e30, 1e30, 1.0)

  def bounds_and_shares(model):
    bounds = roofline.roofline(config, model, plan, 1, sent)
    return bounds, roofline.shares(config, model, bounds, card, 1)

  (_, update), shares = bounds_and_shares(model)
  assert shares['update'] == pytest.approx(3 / 4)
  # With all experts computed for each token, those that it takes are needed.
  whole = dataclasses.replace(model, expert_products='all')
  (_, computed), fewer = bounds_and_shares(whole)
  assert computed.flop > 1.5 * update.flop
  assert fewer['update'] == pytest.approx(3 / 4 * update.flop / computed.flop)
  moved = costs.decode_bytes(
    model,
    costs.Shape(
      config.rollout.num_prompts,
      config.rollout.group_size,
      config.rollout.max_prompt_tokens,
      config.rollout.max_response_tokens,
    ),
  )
  read = moved['weights'] + moved['cache_read']
  assert shares['generate'] == moved['needed'] / read


@pytest.mark.parametrize('param_dtype', ['float32', 'bfloat16'])
def test_weights_are_read_in_the_dtype_of_products(toy, param_dtype):
  """2 bytes of each, whether or not they are kept in another one."""
  model = dataclasses.replace(
    EXPERTS, compute_dtype='bfloat16', param_dtype=param_dtype
  )
  config = bandit.get_config(toy.get_method('grpo'))
  config = dataclasses.replace(config, model=ModelSource(config=model))
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig())
  plan = memory_plan.estimate(config, model, mesh)
  (found,) = roofline.roofline(config, model, plan, 1, {'generate': 0.0})
  cache = plan.cache / 2
  weights = found.moved / config.rollout.max_response_tokens - cache
  count = spec.count(specs(model))
  norms = 2 * 5 * 64  # of float32
  assert 2 * count <= weights <= 2 * count + norms


def generation(toy, **fields):
  """The bound of generation, with other fields of the rollout."""
  config = bandit.get_config(toy.get_method('dapo'))
  config = dataclasses.replace(
    config, rollout=dataclasses.replace(config.rollout, **fields)
  )
  model = dataclasses.replace(EXPERTS, num_experts=0, experts_per_token=0)
  config = dataclasses.replace(config, model=ModelSource(config=model))
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig())
  plan = memory_plan.estimate(config, model, mesh)
  (found,) = roofline.roofline(config, model, plan, 1, {'generate': 0.0})
  weights = plan.sampler_weights or plan.parameters
  step = config.rollout.max_response_tokens * (weights + plan.cache / 2)
  return found, found.moved / step


def test_rows_that_wait_for_a_slot_are_decoded_too(toy):
  """A quarter of the slots take four times the steps; FLOP are the same."""
  sizes = {'num_prompts': 8, 'group_size': 4}
  whole, once = generation(toy, **sizes)
  part, often = generation(toy, slots=8, **sizes)
  assert once == 1.0 and often == 4.0 and part.flop == whole.flop
  assert generation(toy, slots=64, **sizes)[1] == 1.0


def test_a_round_of_dynamic_sampling_is_generated_as_a_whole(toy):
  """Three times the prompts that are trained on take three times the FLOP."""
  sizes = {'num_prompts': 8, 'group_size': 4}
  one, _ = generation(toy, **sizes)
  three, _ = generation(toy, round_prompts=24, **sizes)
  assert three.flop == pytest.approx(3 * one.flop)


def test_responses_that_the_data_hold_are_not_generated(toy):
  """Recorded prompts cost nothing; half of them leave half of the FLOP."""
  sizes = {'num_prompts': 8, 'group_size': 4}
  all_sampled, _ = generation(toy, **sizes)
  none_sampled, _ = generation(toy, recorded_prompts=8, **sizes)
  assert none_sampled.flop == none_sampled.moved == 0
  half, _ = generation(toy, recorded_prompts=4, **sizes)
  assert half.flop == pytest.approx(0.5 * all_sampled.flop)
