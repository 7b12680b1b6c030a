"""The memory plan against XLA, and what is said when it does not fit."""

import dataclasses
import logging

import jax
import pytest

from configs.worlds import bandit, keydoor
from experiments.flags import configuration
from rl_jax.models import presets, spec, specs
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.planning import abstract_run, memory_check, memory_plan
from rl_jax.runs import directory
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

SMALL = presets.small(vocab_size=300, num_heads=4, head_size=16, mlp_size=128)


EXPERTS = dataclasses.replace(
  SMALL, num_experts=8, experts_per_token=2, mlp_size=32
)


def make_config(toy, model=SMALL, **changes):
  """GRPO on 16 prompts of 16 and 8 samples of 32 tokens, in 4 pieces."""
  config = bandit.get_config(toy.get_method('grpo'))
  changes = {
    'rollout__num_prompts': '16',
    'rollout__max_prompt_tokens': '16',
    'rollout__max_response_tokens': '32',
    'update__microbatch_prompts': '4',
    **changes,
  }
  for path, text in changes.items():
    config = override(config, path.replace('__', '.'), text)
  return dataclasses.replace(config, model=ModelSource(config=model))


def plan(config, model, **axes):
  """The estimate on an abstract mesh."""
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig(**axes))
  return memory_plan.estimate(config, model, mesh)


def ratios(config, model, sequence=1):
  """Planned over compiled bytes of the update and of generate."""
  sizes = mesh_lib.MeshConfig(sequence=sequence)
  mesh = mesh_lib.make_mesh(sizes, jax.devices()[:sequence])
  lowered = abstract_run.AbstractRun(config, model, mesh).lower()
  found = memory_plan.estimate(config, model, mesh)
  # Stages do not receive what they do not use.
  planned = {
    'update': found.update - found.reference,
    'generate': found.generate - found.reference - found.optimizer,
  }
  result = {}
  for stage, wanted in planned.items():
    stats = lowered[stage].compile().memory_analysis()
    used = stats.argument_size_in_bytes + stats.temp_size_in_bytes
    used += stats.output_size_in_bytes - stats.alias_size_in_bytes
    result[stage] = wanted / used
  return result


def test_stages_lower_without_weights(toy):
  """The plan follows the stages: all of them trace on shapes only."""
  small = dataclasses.replace(SMALL, num_layers=1)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  lowered = abstract_run.AbstractRun(make_config(toy, small), small, mesh)
  stages = ['generate', 'score', 'make_batch', 'update', 'evaluate']
  assert [*lowered.lower()] == stages


@pytest.mark.slow
def test_a_small_update_needs_what_is_planned(toy):
  """Within a factor of 1.5 of compiled.memory_analysis(), both stages."""
  for stage, ratio in ratios(make_config(toy), SMALL).items():
    assert 1 / 1.5 < ratio < 1.5, stage


@pytest.mark.slow
def test_an_update_of_experts_needs_what_is_planned(toy):
  """Within a factor of 1.5, of all experts, as programs for CPU have them."""
  for stage, ratio in ratios(make_config(toy, EXPERTS), EXPERTS).items():
    assert 1 / 1.5 < ratio < 1.5, stage


def test_experts_are_counted(toy):
  """Weights of all, hidden units of those that compute a token."""
  config = make_config(toy, EXPERTS)
  found = plan(config, EXPERTS)
  # In 2 layers a router of 64 x 8 and 8 experts, not one MLP of 128.
  more = 2 * (64 * 8 + (8 * 32 - 128) * 3 * 64)
  assert found.parameters == plan(config, SMALL).parameters + 4 * more
  # Of 8 experts 2 devices have 4 each; of those chosen, perhaps all.
  chosen = dataclasses.replace(EXPERTS, expert_products='chosen')
  assert plan(config, chosen).activations < found.activations
  assert plan(config, EXPERTS, tensor=2).activations < found.activations


@pytest.mark.slow
def test_long_responses_need_what_is_planned(toy):
  """One row of a group at a time, scores of one block of queries."""
  changes = {
    'rollout__num_prompts': '1',
    'rollout__max_response_tokens': '4096',
    'update__microbatch_prompts': '1',
    'model__remat': 'True',
  }
  model = dataclasses.replace(SMALL, remat=True)
  whole = plan(make_config(toy, model, **changes), model)
  config = make_config(toy, model, **changes, update__microbatch_rows='1')
  assert plan(config, model).activations < whole.activations / 6
  assert 1 / 1.5 < ratios(config, model)['update'] < 1.5


@pytest.mark.devices
@pytest.mark.slow
def test_a_split_update_needs_what_is_planned(toy):
  """Within a factor of 1.5 as well, for long responses on four devices."""
  config = make_config(
    toy,
    rollout__num_prompts='4',
    rollout__max_response_tokens='512',
    update__microbatch_prompts='2',
  )
  for stage, ratio in ratios(config, SMALL, sequence=4).items():
    assert 1 / 1.5 < ratio < 1.5, stage


@pytest.mark.slow
@pytest.mark.parametrize('remat', [False, True])
def test_a_mid_size_update_needs_what_is_planned(toy, remat):
  """SmolLM2-135M, 32 prompts of 128 and 8 samples of 128: within 1.3."""
  model = dataclasses.replace(presets.PRESETS['SmolLM2-135M'], remat=remat)
  config = make_config(
    toy,
    rollout__num_prompts='32',
    rollout__max_prompt_tokens='128',
    rollout__max_response_tokens='128',
  )
  for stage, ratio in ratios(config, model).items():
    assert 1 / 1.3 < ratio < 1.3, stage


def make_episodes(toy, model=SMALL):
  """16 prompts of 14, 8 episodes of 80 tokens, in 16 turns."""
  config = keydoor.get_config(toy.get_method('grpo'))
  return dataclasses.replace(config, model=ModelSource(config=model))


@pytest.mark.parametrize('staleness', [0, 2])
@pytest.mark.parametrize(
  ('slots', 'copied'), [(None, 64 * 80), (16, 16 * (80 + 14)), (4, 4 * 94)]
)
def test_the_cache_of_episodes_is_exact(toy, staleness, slots, copied):
  """2 layers, keys and values, 2 heads of 16; prompts and 128 rows of 80 a
  table, and the rows of one call.

  With a slot for each row those of a call are all, or half of them; few slots
  of many rows have their prompts to themselves. The weights that sample are
  kept between turns as well.
  """
  config = make_episodes(toy)
  rollout = dataclasses.replace(
    config.rollout, staleness=staleness, slots=slots
  )
  config = dataclasses.replace(config, rollout=rollout)
  tables = (1 + staleness) * (16 * 14 + 128 * 80)
  found = plan(config, SMALL)
  assert found.cache == 2 * 2 * 2 * 16 * 4 * (tables + copied)
  assert found.sampler_weights == (1 + staleness) * found.parameters


def test_a_cache_that_episodes_share_is_counted(toy):
  """By hand: 16 of 128 rows have places, in two tables; they are the slots.

  One row leaves and one returns at a time; the host has its own line.
  """
  config = make_episodes(toy)
  rollout = dataclasses.replace(
    config.rollout,
    staleness=1,
    cache_tokens=16 * 80 + 79,
    host_cache_tokens=4000,
  )
  config = dataclasses.replace(config, rollout=rollout)
  found, token = plan(config, SMALL), 2 * 2 * 2 * 16 * 4
  tables = 2 * (16 * 14 + 16 * 80)
  assert found.cache == token * (tables + 16 * (80 + 14) + 2 * 80)
  assert found.host_cache == 4000 * token


@pytest.mark.slow
def test_episodes_need_what_is_planned(toy):
  """Each program of a rollout within 1.3.

  Only one that samples half of the rows copies their cache.
  """
  config = make_episodes(toy)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  found = plan(config, SMALL)
  wanted = found.generate - found.reference - found.optimizer
  copied = 2 * 2 * 2 * 16 * 4 * 64 * 80
  lowered = abstract_run.AbstractRun(config, SMALL, mesh).lower()
  for stage in ('generate', 'feed', 'sample', 'sample 64'):
    stats = lowered[stage].compile().memory_analysis()
    used = stats.argument_size_in_bytes + stats.temp_size_in_bytes
    used += stats.output_size_in_bytes - stats.alias_size_in_bytes
    planned = wanted if stage == 'sample 64' else wanted - copied
    assert 1 / 1.3 < planned / used < 1.3, stage


def test_what_is_exact(toy):
  """Parameters, moments, reference and cache, by hand; LoRA keeps few."""
  config = make_config(toy)
  count = spec.count(specs(SMALL))
  found = plan(config, SMALL)
  assert found.parameters == found.reference == 4 * count
  assert found.optimizer == 8 * count + 2 * 4  # and two counters
  # 2 layers, keys and values, 2 heads of 16: 16 prompts, 128 rows of 32.
  # Prompts once, 128 rows, and the 96 that continue first again.
  places = 16 * 16 + 128 * 32 + 96 * 32
  assert found.cache == 2 * 2 * 2 * 16 * 4 * places
  adapted = plan(config, dataclasses.replace(SMALL, lora_rank=2))
  assert adapted.parameters > found.parameters
  assert adapted.optimizer < found.optimizer / 4
  assert adapted.reference == (adapted.optimizer - 8) // 2


def test_master_weights_are_counted(toy):
  """2 bytes a weight and copy, 2 of the remainder, 2 + 4 of the moments.

  Of 8 bits 1 + 1, and scales of blocks of 16 to 64 numbers.
  """
  model = dataclasses.replace(SMALL, param_dtype='bfloat16')
  config = make_config(toy, optimizer__moment_dtype='bfloat16')
  found, count = plan(config, model), spec.count(specs(SMALL))
  assert found.parameters == found.reference == 2 * count
  assert found.optimizer == 8 * count + 2 * 4
  config = make_config(toy, optimizer__moment_dtype='int8')
  scales = plan(config, model).optimizer - 4 * count - 2 * 4
  assert 2 * 4 * count / 64 < scales < 2 * 4 * count / 16


def test_another_optimizer_is_counted(toy):
  """Lion keeps one moment, Adafactor sums of rows and columns."""
  found = [
    plan(make_config(toy, optimizer__name=name), SMALL).optimizer
    for name in ('adamw', 'lion', 'adafactor')
  ]
  assert found[1] == pytest.approx(found[0] / 2, rel=1e-4)
  assert found[2] < found[0]


def test_parts_and_lagged_weights_are_counted(toy):
  """The cache is that of a part; there are two copies besides the reference."""
  whole = plan(make_config(toy), SMALL)
  half = plan(make_config(toy, rollout__num_prompts='8'), SMALL)
  changes = {'rollout__parts': '2', 'rollout__staleness': '2'}
  found = plan(make_config(toy, **changes), SMALL)
  assert found.cache == half.cache < whole.cache
  assert found.reference == 3 * whole.reference == 3 * whole.parameters
  assert found.rollout == whole.rollout


def test_the_cache_grows_with_the_slots(toy):
  """By hand: 16 prompts once, 32 slots, and the 24 that continue, with
  prompts.
  """
  config = make_config(toy, rollout__slots='32')
  places = 16 * 16 + 32 * 32 + 24 * (16 + 32)
  assert plan(config, SMALL).cache == 2 * 2 * 2 * 16 * 4 * places
  # Of every device its part; as many slots as rows are none.
  assert plan(config, SMALL, data=4).cache < plan(config, SMALL).cache / 3
  config = make_config(toy, rollout__slots='128')
  assert plan(config, SMALL).cache == plan(make_config(toy), SMALL).cache


def test_drafts_are_counted(toy):
  """Logits of every drafted token, one block of places, kept responses."""
  small = {'rollout__max_prompt_tokens': '1'}
  text = 'PreviousResponses(tokens=3, prompts=100)'
  plain = plan(make_config(toy, **small), SMALL)
  found = plan(make_config(toy, rollout__speculative=text, **small), SMALL)
  assert found.rollout - plain.rollout == 4 * 2 * 100 * 32
  assert found.scratch == 4 * plain.scratch == 4 * 3 * 128 * 300 * 4


def test_many_rows_begin_in_a_small_cache(toy):
  """By hand: 32 of 128 places at first, for 128 rows; not with fewer slots."""
  tokens = {'rollout__max_response_tokens': '128'}
  places = 16 * 16 + 128 * 32 + 128 * 128 + 96 * 128
  found = plan(make_config(toy, **tokens), SMALL)
  assert found.cache == 2 * 2 * 2 * 16 * 4 * places
  found = plan(make_config(toy, **tokens, rollout__slots='64'), SMALL)
  assert found.cache == 2 * 2 * 2 * 16 * 4 * (16 * 16 + 112 * 128)


def test_slots_share_a_pool(toy):
  """By hand: 16 prompts, 32 blocks of 64 for 128 rows of two; then of 8."""
  tokens = {
    'rollout__max_response_tokens': '128',
    'rollout__cache_tokens': '2048',
  }
  pooled = make_config(toy, **tokens)
  found = plan(pooled, SMALL).cache
  assert found == 2 * 2 * 2 * 16 * 4 * (16 * 16 + 2048 + 8 * 128)
  # 16 slots at a time, which have their prompts to themselves.
  found = plan(make_config(toy, **tokens, rollout__slots='16'), SMALL).cache
  places = 16 * 16 + 2048 + 8 * 128 + (16 + 8) * 16
  assert found == 2 * 2 * 2 * 16 * 4 * places
  assert plan(pooled, SMALL, data=4).cache < plan(pooled, SMALL).cache / 2


def test_a_mesh_divides_it(toy):
  """fsdp: parameters, rows; data: rows; tensor: heads, MLP, vocab; tokens."""
  config = make_config(toy)
  one, data = plan(config, SMALL), plan(config, SMALL, data=4)
  fsdp, tensor = plan(config, SMALL, fsdp=4), plan(config, SMALL, tensor=2)
  assert data.parameters == one.parameters
  # Norms are replicated on every device.
  assert one.parameters / 4 < fsdp.parameters < one.parameters / 3.8
  # A device has 4 prompts and 32 rows, of which 24 continue first.
  places = 4 * 16 + 32 * 32 + 24 * 32
  assert data.cache == fsdp.cache == 2 * 2 * 2 * 16 * 4 * places
  assert one.cache == 2 * tensor.cache
  assert one.activations == 4 * data.activations == 4 * fsdp.activations
  # The sampler's weights are whole over fsdp; a single device makes no copy.
  assert one.sampler_weights == 0
  assert fsdp.sampler_weights == one.parameters
  # Prompts of an update are replicated over the sequence axis.
  split = plan(config, SMALL, sequence=4)
  assert split.parameters == one.parameters
  assert split.cache == data.cache
  assert one.activations / 4 < split.activations < one.activations / 2.5


def test_the_knobs_lower_the_plan(toy):
  """Each of them by itself, or the advice would be none.

  Of several layers, as copies of one in another dtype are held.
  """
  model = dataclasses.replace(SMALL, num_layers=8)
  base = plan(make_config(toy), model)
  remat = dataclasses.replace(model, remat=True)
  assert plan(make_config(toy), remat).update < base.update
  half = dataclasses.replace(model, param_dtype='bfloat16')
  assert plan(make_config(toy), half).update < base.update
  for path, value in {
    'update__microbatch_prompts': '1',
    'optimizer__moment_dtype': 'bfloat16',
    'rollout__max_response_tokens': '16',
  }.items():
    assert plan(make_config(toy, **{path: value}), model).update < base.update
  for path, value in {
    'rollout__num_prompts': '8',
    'rollout__max_response_tokens': '16',
    'rollout__slots': '32',
  }.items():
    smaller = plan(make_config(toy, **{path: value}), model)
    assert smaller.generate < base.generate


def test_a_limit_is_compared_before_anything_is_loaded(toy, caplog):
  """Quiet where it fits, a warning with the knobs, an error without hope."""
  # absl's handler, not the root logger's, writes on stderr.
  config = make_config(toy)
  model = policy_lib.planned_model(config.model, config.task, Platform())
  found = plan(config, model)
  with caplog.at_level(logging.WARNING, 'absl'):
    memory_check.check(config, None)
    memory_check.check(config, found.peak)
    assert not caplog.records
    memory_check.check(config, found.peak - 1)
  (record,) = caplog.records
  for text in (
    'update.microbatch_prompts = 4',
    'update.microbatch_rows = None',
    'model.remat = False',
    'model.param_dtype = float32',
    'optimizer.moment_dtype = float32',
    'rollout.slots = None',
    'rollout.num_prompts = 16',
    'rollout.max_response_tokens = 32',
  ):
    assert text in record.getMessage()
  with pytest.raises(ValueError, match='mesh.fsdp = 1.*lora_rank = 0'):
    memory_check.check(config, found.kept - 1)


def test_an_out_of_memory_error_names_the_knobs(toy):
  """Only RESOURCE_EXHAUSTED is turned into a MemoryError."""
  config = make_config(toy)
  error = jax.errors.JaxRuntimeError
  with pytest.raises(MemoryError) as caught, memory_check.guarded(config):
    raise error('RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\nmore')
  text = str(caught.value)
  assert 'allocating 99 bytes' in text and 'more' not in text.split('What')[0]
  assert 'update.microbatch_prompts = 4' in text and 'remat = False' in text
  with pytest.raises(error, match='INTERNAL'), memory_check.guarded(config):
    raise error('INTERNAL: something else')


def test_the_shape_of_a_model_is_found_without_weights(toy, tmp_path):
  """A task's alphabet, a saved run, a plan for files that are not there."""
  config = make_config(toy)
  model = policy_lib.planned_model(config.model, config.task, Platform())
  assert model == dataclasses.replace(SMALL, vocab_size=18)
  directory.write_config(config, str(tmp_path))
  source = ModelSource(path=str(tmp_path), remat=True)
  assert policy_lib.planned_model(
    source, None, Platform()
  ) == dataclasses.replace(model, remat=True)
  planned = configuration.build('qwen2p5_7b_gsm8k', 'grpo')
  model = policy_lib.planned_model(planned.model, planned.task, Platform())
  assert model.num_layers == 28 and model.compute_dtype == 'bfloat16'
  assert (
    policy_lib.planned_model(ModelSource(path='nowhere'), None, Platform())
    is None
  )


def on_gpu(**fields):
  """The small model with a tied table of 300 tokens, in bfloat16 on a GPU."""
  return dataclasses.replace(
    SMALL,
    compute_dtype='bfloat16',
    platform=Platform('cuda', (9, 0)),
    **fields,
  )


def test_sampling_on_gpu_holds_logits_beside_weights_and_cache(toy):
  """By hand: of 8 rows a device, also with a table that is the last matrix."""
  few = {'rollout__num_prompts': '2', 'update__microbatch_prompts': '2'}
  few |= {'rollout__max_response_tokens': '64'}
  config = make_config(toy, rollout__max_prompt_tokens='1', **few)
  for tied in (True, False):
    model = on_gpu(vocab_size=3000, tied_embeddings=tied)
    assert plan(config, model, fsdp=2).scratch == 8 * 3000 * 4
  # Weights that are not copied before are cut out once.
  found = plan(config, on_gpu(param_dtype='bfloat16'))
  layer = 64 * 16 * 2 * (4 + 2) + 3 * 64 * 128
  assert found.sampler_weights == 2 * SMALL.num_layers * layer
  assert found.scratch == 16 * 300 * 4


@pytest.mark.parametrize(('platform', 'arrays'), [('cuda', 1), ('tpu', 4)])
def test_fewer_rows_have_a_part_of_their_cache_at_once(toy, platform, arrays):
  """By hand: 16 rows of 64 tokens become 8; two prompts of 16 tokens.

  Beside all the others are keys of one layer of four on GPU, and those of all
  four on TPU.
  """
  config = make_config(
    toy, rollout__num_prompts='2', rollout__max_response_tokens='64'
  )
  model = dataclasses.replace(
    on_gpu(head_size=128), platform=Platform(platform), num_layers=4
  )
  token = SMALL.num_kv_heads * 128 * 2  # keys or values of one layer
  places = 2 * 4 * (2 * 16 + 16 * 64) + arrays * 8 * 64
  assert plan(config, model).cache == places * token


def test_hidden_units_of_prompts_are_counted_on_accelerators(toy):
  """By hand, of 64 prompts of 128 tokens; the table is not there yet."""
  tokens = {'rollout__num_prompts': '64', 'rollout__max_prompt_tokens': '128'}
  tokens |= {'rollout__max_response_tokens': '2'}
  config = make_config(toy, rollout__group_size='2', **tokens)
  model = on_gpu(vocab_size=20, head_size=128)
  numbers = 2 * 64 + 2 * 128 + (4 + 4) * 128 + 2 * SMALL.num_layers * 2 * 128
  wanted = 2 * (64 * 128 * numbers - 20 * 64)
  found = plan(config, model)
  assert found.cache + found.scratch == wanted
  # On TPU one more of the hidden units, the table and one matrix of each layer.
  found = plan(config, dataclasses.replace(model, platform=Platform('tpu')))
  wanted += 2 * (64 * 128 * 128 + 2 * 20 * 64 + SMALL.num_layers * 64 * 128)
  held = found.cache + found.scratch + found.sampler_weights
  assert held == pytest.approx(1.04 * wanted, rel=1e-3)


def test_prompts_of_episodes_come_before_the_cache_of_fewer_rows(toy):
  """By hand, on a GPU: beside them are the prompts and all rows, 1,024 places.

  The batch narrows to 32 of its 128 rows, of 80 places each, in later turns.
  """
  config = make_episodes(toy)
  wide = dataclasses.replace(config.rollout, max_prompt_tokens=1024)
  config = dataclasses.replace(config, rollout=wide)
  token = 2 * SMALL.num_layers * 2 * 16
  numbers = 2 * 64 + 2 * 128 + (4 + 4) * 16 + token
  found = plan(config, on_gpu(vocab_size=20))
  places = 16 * 1024 + 128 * 80
  wanted = 2 * (16 * 1024 * numbers + places * token)
  assert found.cache == 2 * (places + 32 * 80) * token
  assert found.cache + found.scratch == wanted


def test_tpus_pad_heads_and_turn_logits(toy):
  """By hand: heads of 64 lie in 128 numbers where a kernel attends; logits in
  two layouts, before the 32 rows to which the batch narrows have their cache.
  """
  config = make_config(toy, rollout__max_prompt_tokens='1')
  model = on_gpu(vocab_size=3000, head_size=64)
  gpu = plan(config, model)
  model = dataclasses.replace(
    model, platform=Platform('tpu'), attention='splash'
  )
  tpu = plan(config, model)
  token = 2 * SMALL.num_layers * 2 * 128 * 2
  taken = 32 * 32 // (2 * SMALL.num_layers)  # keys of one layer on GPUs
  assert 2 * gpu.cache == (16 + 32 * 128 + taken) * token
  assert tpu.cache == (16 + 32 * 128 + 32 * 32 // 2) * token
  plain = plan(config, dataclasses.replace(model, attention='plain'))
  assert 2 * plain.cache == tpu.cache
  layers = SMALL.num_layers * (64 * 64 * 2 * (4 + 2) + 3 * 64 * 128)
  held = 2 * (layers + 3000 * 64) + (16 + 32 * 128) * token
  held += 2 * 128 * 3000 * 4
  found = tpu.sampler_weights + tpu.cache + tpu.scratch
  assert found == pytest.approx(1.04 * held, rel=1e-3)


def test_tpus_gather_the_table_of_tokens_and_turn_it(toy):
  """By hand: the peak of a shallow model is before the first step."""
  few = {'rollout__num_prompts': '2', 'update__microbatch_prompts': '2'}
  config = make_config(toy, rollout__max_prompt_tokens='1', **few)
  model = on_gpu(vocab_size=30000)
  model = dataclasses.replace(model, platform=Platform('tpu'))
  found = plan(config, model, fsdp=2)
  layers = SMALL.num_layers * (64 * 16 * 2 * (4 + 2) + 64 * 128)
  held = found.sampler_weights + found.cache + found.scratch
  wanted = 2 * (layers + 2 * 30000 * 64)
  assert held == pytest.approx(1.04 * wanted, rel=1e-3)


def test_logits_come_before_the_gradients_of_layers(toy):
  """By hand: two matrices of attention of four heads, two of two, the MLP's."""
  layer = 64 * 16 * 2 * (4 + 2) + 3 * 64 * 128 + 2 * 64
  found = plan(make_config(toy), SMALL)
  assert found.layer_gradients == 4 * SMALL.num_layers * layer
  held = found.kept + found.gradients + found.activations
  assert found.logits - found.layer_gradients < found.layer < found.logits
  assert found.update == held + found.layer
  found = plan(make_config(toy), dataclasses.replace(SMALL, vocab_size=30000))
  held = found.kept + found.gradients + found.activations
  assert found.layer < found.logits - found.layer_gradients
  assert found.update == held + found.logits - found.layer_gradients


def test_tpus_hold_attention_beside_the_mlp_and_the_table_of_tokens(toy):
  """By hand: one group of 8 rows of 31 tokens after 16 of the prompt."""
  config = make_config(toy, update__microbatch_prompts='1')
  model = on_gpu(attention='splash', remat=True)
  model = dataclasses.replace(model, platform=Platform('tpu'))
  found = plan(config, model)
  tokens, places = 16 + 8 * 31, 4 * 8 * 47
  rows = places * 128 * 2  # heads of 16 numbers lie in 128
  products = (4 + 2 * 2) * 16 + 2 * 64
  mlp = 5 * 128 + 6 * 64
  weights = 64 * 16 * 2 * (4 + 2) + 3 * 64 * 128
  table = 300 * 64
  held = 2 * (tokens * (products + mlp) + weights) + 2 * rows
  # The gradient of the table is in the sum of microbatches by then.
  assert found.layer == held + 2 * table - 4 * table
  # Of the whole minibatch there is no sum, and no copy that outlives layers.
  whole = make_config(toy, update__microbatch_prompts='4')
  whole = dataclasses.replace(
    whole, update=dataclasses.replace(whole.update, minibatch_prompts=4)
  )
  more = plan(whole, model)
  held = 2 * (4 * tokens * (products + mlp) + weights) + 4 * 2 * rows
  assert more.layer == held
  kept = plan(config, dataclasses.replace(model, remat=False))
  saved = 2 * tokens * (products + 2 * 128) + 2 * places * 16
  assert kept.activations - found.activations == SMALL.num_layers * saved


@pytest.mark.parametrize('fsdp', [1, 4])
def test_tpus_hold_weights_in_the_compute_dtype(toy, fsdp):
  """By hand: all layers, or this device's shares and two more of the table."""
  model = dataclasses.replace(on_gpu(), platform=Platform('tpu'))
  found = plan(make_config(toy), model, fsdp=fsdp)
  float32 = plan(
    make_config(toy),
    dataclasses.replace(model, compute_dtype='float32'),
    fsdp=fsdp,
  )
  own, table = found.parameters // 4, 300 * 64 // fsdp
  copies = own - table if fsdp == 1 else own + 2 * table
  assert found.gradients == float32.gradients + 2 * copies


@pytest.mark.parametrize('attention', ['plain', 'cudnn'])
def test_no_attention_keeps_scores(toy, attention):
  """Twice the length is twice the memory, not four times; generation too."""
  model = dataclasses.replace(SMALL, attention=attention)
  short, long = (
    plan(
      make_config(
        toy,
        rollout__max_prompt_tokens=str(tokens),
        rollout__max_response_tokens=str(2 * tokens),
      ),
      model,
    )
    for tokens in (1024, 2048)
  )
  assert long.activations < 2.2 * short.activations
  assert long.scratch < 2.2 * short.scratch


def test_an_evaluation_is_planned_as_a_rollout_of_its_size(toy):
  """Its batch, samples and limit; slots count; nothing if there is none."""
  shape = dict(num_prompts=32, group_size=4, max_response_tokens=64)
  rollout = {f'rollout__{name}': str(x) for name, x in shape.items()}
  evaluation = {
    'evaluation__every': '1',
    'evaluation__num_prompts': '100',
    'evaluation__batch_prompts': '32',
    'evaluation__num_samples': '4',
    'evaluation__max_response_tokens': '64',
  }
  for slots in ('null', '16'):
    config = make_config(toy, rollout__slots=slots, **evaluation)
    wanted = plan(make_config(toy, rollout__slots=slots, **rollout), SMALL)
    found = plan(config, SMALL)
    arrays = 4 * 4 * 32 * 4 * 64
    assert found.evaluation == wanted.cache + wanted.scratch + arrays
    assert found.peak >= found.evaluate > found.generate
  none = make_config(toy, **{**evaluation, 'evaluation__every': '0'})
  assert plan(none, SMALL).evaluation == 0
  # No more prompts than there are; rows that devices share evenly.
  few = {**evaluation, 'evaluation__num_prompts': '5'}
  found = plan(make_config(toy, **few), SMALL, data=2)
  six = {
    **rollout,
    'rollout__num_prompts': '6',
    'update__microbatch_prompts': '6',
  }
  wanted = plan(make_config(toy, **six), SMALL, data=2)
  assert found.evaluation == wanted.cache + wanted.scratch + 4 * 4 * 6 * 4 * 64
