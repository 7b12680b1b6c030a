"""Decoding programs of TPU and GPU attend by kernels that read caches in place.

Nothing is executed; tests/models/test_decode_attention.py has the numbers.
"""

import dataclasses
import math
import re

import jax
from jax.sharding import SingleDeviceSharding
import pytest

from configs.worlds import bandit, keydoor
from rl_jax import decoding
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import ModelConfig
from rl_jax.models.source import ModelSource
from rl_jax.planning import abstract_run
from rl_jax.planning.targets import Target
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.worlds import Arithmetic

pytestmark = pytest.mark.compilers

TARGETS = {'tpu:v5e:2x2': 'tpu_custom_call', 'gpu:h100:1x1x4': 'triton'}
LAYERS, TOKENS = 3, 640
MODEL = ModelConfig(
  vocab_size=1,  # replaced by the size of the task's alphabet
  num_layers=LAYERS,
  width=64,
  num_heads=4,
  num_kv_heads=2,
  head_size=64,
  mlp_size=32,
)
WINDOWED = dataclasses.replace(MODEL, window=128, windowed=(0,))


def generate(toy, target, axes, shape=MODEL, cache_tokens=None, **fields):
  """The compiled program of sampling on a mesh of data, fsdp, tensor."""
  sizes = dict(zip(('data', 'fsdp', 'tensor'), axes, strict=True))
  config = dataclasses.replace(
    bandit.get_config(toy.get_method('grpo')),
    task=Arithmetic(digits=1),
    model=ModelSource(config=shape, **fields),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=4,
      max_prompt_tokens=16,
      max_response_tokens=TOKENS,
      cache_tokens=cache_tokens,
    ),
    mesh=mesh_lib.MeshConfig(**sizes),
  )
  return compiled(target, config, 'generate')


def compiled(target, config, stage):
  """The text of a compiled program."""
  target = Target.parse(target)
  mesh = mesh_lib.make_mesh(config.mesh, list(target.devices()))
  model = policy_lib.planned_model(
    config.model, config.task, target.platform, config.mesh.sequence
  )
  run = abstract_run.AbstractRun(config, model, mesh)
  return run.lower()[stage].compile().as_text() or ''


def loops(text):
  """The computations that call kernels of decode attention.

  They are the bodies of loops over tokens; on TPU, of scans over layers.
  """
  computations = re.split(r'\n(?=\S.*\{\n)', text)
  return [x for x in computations if kernels(x)]


def kernels(text):
  """Targets of the calls of kernels; each is named so in its metadata."""
  return re.findall(r'custom_call_target="([^"]*)".*decode_attention', text)


@pytest.mark.parametrize('target', TARGETS)
@pytest.mark.parametrize('axes', [(4, 1, 1), (1, 4, 1), (1, 2, 2)])
def test_kernels_attend_and_no_cache_is_copied(toy, target, axes):
  """One call for prompts and one for responses, in every layer of a loop.

  Rows have two widths, each with its loop; on TPU a loop has one layer. The
  keys of a row are an array whose last axes are 640 and 64, in some order.
  """
  bodies = loops(generate(toy, target, axes))
  layers = 1 if target.startswith('tpu') else LAYERS
  assert len(bodies) == 2
  for body in bodies:
    assert len(kernels(body)) == 2 * layers
    assert all(TARGETS[target] in name for name in kernels(body))
    copied = re.findall(
      rf'(?:copy|transpose)\S* = bf16\[[\d,]*(?:{TOKENS},64|64,{TOKENS})\]',
      body,
    )
    assert copied == []


@pytest.mark.parametrize('axes', [(4, 1, 1), (1, 4, 1), (1, 2, 2)])
def test_programs_with_experts_hold_one_layer_on_gpu(toy, axes):
  """Kernels read the cache, and three matrices of experts, among all layers.

  Matrices of a layer's experts are cut out nowhere in the loops over tokens.
  """
  routed = dataclasses.replace(
    MODEL, num_experts=8, experts_per_token=2, mlp_size=48
  )
  bodies = loops(generate(toy, 'gpu:h100:1x1x4', axes, routed))
  own = 8 // axes[-1]
  assert len(bodies) == 2
  for body in bodies:
    assert len(kernels(body)) == 2
    products = re.findall(r'custom_call_target="[^"]*".*ragged_product', body)
    assert len(products) == 3
    shapes = re.findall(r'%(?!param|get-tuple)\S* = bf16\[([\d,]+)\]', body)
    assert not [
      x for x in shapes if x.endswith((f'{own},64,48', f'{own},48,64'))
    ]


def test_observations_are_fed_without_a_copy_of_a_layer_on_tpu(toy):
  """Their tokens are written by comparisons; a scatter turned keys and values.

  Between programs and their loops the cache of all layers is turned once.
  """
  config = keydoor.get_config(toy.get_method('grpo'))
  turns = TurnConfig(max_turns=4, max_turn_tokens=16, max_observation_tokens=32)
  rollout = dataclasses.replace(
    config.rollout,
    num_prompts=16,
    group_size=4,
    max_prompt_tokens=16,
    max_response_tokens=TOKENS,
    turns=turns,
  )
  config = dataclasses.replace(
    config,
    model=ModelSource(config=MODEL),
    rollout=rollout,
    mesh=mesh_lib.MeshConfig(fsdp=4),
    update=dataclasses.replace(config.update, minibatch_prompts=16),
    evaluation=dataclasses.replace(config.evaluation, every=0),
  )
  text = compiled('tpu:v5e:2x2', config, 'feed')
  # Keys of one layer, of 16 rows on each device.
  assert_never_copied(text, 16 * TOKENS)


def assert_never_copied(text, tokens):
  """Keys or values of so many tokens of a layer, and no token is scattered.

  What a call puts back are whole rows of all layers, each with all its places.
  """
  shapes = re.findall(r'copy\S* = bf16\[([\d,]+)\]', text)
  copied = [math.prod(map(int, shape.split(','))) for shape in shapes]
  assert tokens * MODEL.num_kv_heads * MODEL.head_size not in copied
  for computation in re.split(r'\n(?=\S.*\{\n)', text):
    if re.search(r'bf16\[\S* scatter\(', computation):
      header = computation.partition('\n')[0]
      for shape in re.findall(r'bf16\[([\d,]+)\]', header):
        assert str(TOKENS) in shape.split(',')


def test_a_pool_is_written_without_a_copy_of_a_layer_on_tpu(toy):
  """Blocks look for the token of their row; a scatter turned the layer twice.

  640 blocks of 64 tokens on each device.
  """
  tokens = 640 * 64
  pooled = generate(toy, 'tpu:v5e:2x2', (1, 4, 1), cache_tokens=4 * tokens)
  assert f'bf16[640,{LAYERS},' in pooled
  assert_never_copied(pooled, tokens)


@pytest.mark.parametrize('target', TARGETS)
def test_windows_have_kernels_in_decoding(toy, target):
  """One layer of three has a window."""
  assert loops(generate(toy, target, (2, 2, 1), WINDOWED))


@pytest.mark.parametrize('target', TARGETS)
def test_plain_attention_has_no_kernel_in_decoding(toy, target):
  """The configuration that asks for plain attention gets it everywhere."""
  assert not kernels(generate(toy, target, (2, 2, 1), attention='plain'))


def test_logits_are_reduced_once_on_gpu():
  """One kernel has maxima and sums of blocks, where CPU has two.

  The kernel that reduces the block of the drawn token reads the logits, too.
  """
  [device] = Target.parse('gpu:h100:1x1x1').devices()
  here = SingleDeviceSharding(device)
  logits = jax.ShapeDtypeStruct((64, 32768), 'float32', sharding=here)
  uniform = jax.ShapeDtypeStruct((64,), 'float32', sharding=here)
  draw = jax.jit(decoding.sample_token, static_argnames='platform')
  passes = {}
  for name in ('cuda', 'cpu'):
    lowered = draw.lower(logits, uniform, platform=Platform(name))
    text = lowered.compile().as_text() or ''
    reduced = re.findall(r'fusion\(.*%logits_BV.*kind=kInput', text)
    passes[name] = len(reduced)
  assert passes == {'cuda': 2, 'cpu': 3}
