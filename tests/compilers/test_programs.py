"""Programs of TPU and GPU, compiled by their compilers on this machine.

`make test-compilers` runs them, in an environment that has the compilers.
Nothing is executed: what is asserted is that programs compile, and which
collectives they hold.
"""

import collections
import dataclasses
import functools
import hashlib
import math
import pathlib
import re

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import pytest

from configs.worlds import bandit
from rl_jax.decoding.drafts.settings import PromptLookup
from rl_jax.learning.update import UpdateConfig
from rl_jax.models import ModelConfig
from rl_jax.models.source import ModelSource
from rl_jax.pieces.statistics import action_values
from rl_jax.planning import abstract_run, collectives, programs
from rl_jax.planning.targets import Target
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.worlds import Arithmetic

pytestmark = pytest.mark.compilers

TARGETS = ('tpu:v5e:2x2', 'gpu:h100:1x1x4')
METHODS = sorted(
  path.stem
  for path in (pathlib.Path('configs') / 'methods').glob('*.py')
  if path.stem != '__init__'
)
MODEL = ModelConfig(
  vocab_size=1,  # replaced by the size of the task's alphabet
  num_layers=2,
  width=64,
  num_heads=2,
  num_kv_heads=1,
  head_size=64,
  mlp_size=32,
)
# Rows that are long enough for several widths and a small cache.
LONG = RolloutConfig(
  num_prompts=32,
  group_size=4,
  max_prompt_tokens=8,
  max_response_tokens=128,
)


@functools.cache
def devices(target):
  """The devices of a target; the compilers are loaded once a process."""
  return tuple(Target.parse(target).devices())


def lowered(
  target,
  method,
  rollout,
  axes=(2, 2, 1),
  microbatch_prompts=None,
  shape=MODEL,
  **fields,
):
  """The programs of an iteration on a mesh of data, fsdp, tensor, sequence."""
  names = ('data', 'fsdp', 'tensor', 'sequence')
  sizes = dict(zip(names, axes, strict=False))
  config = dataclasses.replace(
    bandit.get_config(method),
    task=Arithmetic(digits=1),
    model=ModelSource(config=shape, **fields),
    update=UpdateConfig(epochs=2, microbatch_prompts=microbatch_prompts),
    rollout=rollout,
    mesh=mesh_lib.MeshConfig(**sizes),
  )
  mesh = mesh_lib.make_mesh(config.mesh, list(devices(target)))
  model = policy_lib.planned_model(
    config.model,
    config.task,
    Target.parse(target).platform,
    config.mesh.sequence,
  )
  return abstract_run.AbstractRun(config, model, mesh).lower()


@pytest.mark.parametrize('target', TARGETS)
@pytest.mark.parametrize('name', METHODS)
def test_every_method_compiles(toy, target, name):
  """Its update, and what is scored before it."""
  method = toy.get_method(name)
  heads = method.num_values
  if method.reads_action_values:
    tokenizer = policy_lib.task_tokenizer(Arithmetic(digits=1))
    heads = action_values.num_values(tokenizer.vocab_size)
  found = lowered(
    target,
    method,
    RolloutConfig(
      num_prompts=20,  # four bundles of five, where prompts are bundled
      group_size=4,
      max_prompt_tokens=4,
      max_response_tokens=4,
    ),
    value_head=True,
    num_values=heads,
  )
  for stage in ('score', 'update'):
    if stage in found:
      compile_once(target, found[stage])


_COMPILED: set[tuple[str, str]] = set()


def compile_once(target, program):
  """Many methods have the scores of others: equal texts are one program."""
  key = target, hashlib.sha256(program.as_text().encode()).hexdigest()
  if key not in _COMPILED:
    programs.compiled(program, devices=4)
  _COMPILED.add(key)


@pytest.mark.parametrize('target', TARGETS)
@pytest.mark.parametrize('axes', [(4, 1, 1), (1, 4, 1), (2, 2, 1)])
@pytest.mark.parametrize(
  'options',
  [
    {},
    {'slots': 32},
    {'cache_tokens': 4096},
    {'speculative': PromptLookup(tokens=3, ngram=2)},
  ],
)
def test_no_token_waits_for_another_device(toy, target, axes, options):
  """Rows are independent: loops over tokens hold no collective."""
  rollout = dataclasses.replace(LONG, **options)
  found = lowered(target, toy.get_method('grpo'), rollout, axes)
  program = programs.compiled(found['generate'], devices=4)
  assert program.by_token == []


@pytest.mark.parametrize(
  ('target', 'kernel'),
  [('tpu:v5e:2x2', 'tpu_custom_call'), ('gpu:h100:1x1x4', 'fmha')],
)
def test_attention_is_a_kernel(toy, target, kernel):
  """In prompts, scores, and both passes of an update."""
  found = lowered(target, toy.get_method('grpo'), LONG)
  for stage, least in (('generate', 1), ('score', 1), ('update', 2)):
    kernels = programs.compiled(found[stage], devices=4).kernels
    used = sum(n for name, n in kernels.items() if kernel in name.lower())
    assert used >= least, (stage, kernels)


@pytest.mark.parametrize('target', TARGETS)
def test_sampled_weights_are_gathered_in_the_compute_dtype(toy, target):
  """They take half the bytes, and half the memory, of weights in float32."""
  found = lowered(target, toy.get_method('grpo'), LONG, (1, 4, 1))
  text = found['generate'].compile().as_text() or ''
  shapes = re.findall(r' = f32\[([\d,]+)\]\S* all-gather(?:-done)?\(', text)
  results = '128,128'  # log-probs of all rows and tokens
  sizes = [math.prod(map(int, x.split(','))) for x in shapes if x != results]
  # States that a token is drawn from are in float32, and few.
  assert max(sizes, default=0) < MODEL.width * MODEL.mlp_size


@pytest.mark.parametrize(
  ('target', 'kernel', 'cap'),
  [
    ('tpu:v5e:2x2', 'tpu_custom_call', 50.0),
    ('gpu:h100:1x1x4', 'fmha', None),
  ],
)
def test_attention_with_windows_is_a_kernel(toy, target, kernel, cap):
  """One layer of two has a window, as in Gemma; on TPU scores have a cap."""
  shape = dataclasses.replace(
    MODEL, window=64, windowed=(0,), attention_cap=cap
  )
  found = lowered(target, toy.get_method('grpo'), LONG, shape=shape)
  kernels = programs.compiled(found['score'], devices=4).kernels
  # One with the window and one without.
  assert sum(n for x, n in kernels.items() if kernel in x.lower()) >= 2


def test_experts_are_kernels_on_gpu(toy):
  """Three products of a layer: forward, again, and two gradients of each.

  XLA would multiply each token with every expert of a device.
  """
  shape = dataclasses.replace(MODEL, num_experts=4, experts_per_token=2)
  target = 'gpu:h100:1x1x4'
  for axes in ((4, 1, 1), (1, 2, 2)):
    found = lowered(target, toy.get_method('grpo'), LONG, axes, shape=shape)
    text = found['update'].compile().as_text() or ''
    names = re.findall(r'triton.*/(ragged_product\w*)', text)
    count = collections.Counter(names)
    assert count['ragged_product_of_blocks'] == 3
    assert count['ragged_product'] >= 2 * 3
    assert 'ragged_product' in (found['generate'].compile().as_text() or '')


REMATERIALIZED = 'nvoluntary full rematerialization'


def warnings_of(capfd, program):
  """The text that XLA writes while a program is compiled."""
  capfd.readouterr()
  programs.compiled(program, devices=4)
  return capfd.readouterr().err


@pytest.mark.parametrize('stage', ['score', 'update'])
@pytest.mark.parametrize(
  'axes', [(4, 1, 1), (1, 4, 1), (1, 2, 2), (2, 1, 1, 2)]
)
def test_no_array_is_rematerialized(toy, capfd, axes, stage):
  """XLA warns where it must gather a whole array to shard it again.

  The compiler for TPU divides programs in the same way, and says nothing.
  """
  found = lowered(
    'gpu:h100:1x1x4', toy.get_method('grpo'), LONG, axes, microbatch_prompts=8
  )
  assert REMATERIALIZED not in warnings_of(capfd, found[stage])


def test_warnings_of_rematerialization_are_seen(capfd):
  """An array that is sharded again on purpose."""
  mesh = mesh_lib.make_mesh(
    mesh_lib.MeshConfig(data=2, fsdp=2), list(devices('gpu:h100:1x1x4'))
  )
  columns, both = (
    NamedSharding(mesh, PartitionSpec(*axes))
    for axes in ((None, None, ('data', 'fsdp')), ('data', 'fsdp', None))
  )

  def twice(x):
    x = jax.lax.with_sharding_constraint(jnp.sin(x), columns)
    return jax.lax.with_sharding_constraint(jnp.cos(2 * x), both)

  shape = jax.ShapeDtypeStruct((8, 64, 64), jnp.float32, sharding=columns)
  assert REMATERIALIZED in warnings_of(capfd, jax.jit(twice).lower(shape))


@pytest.mark.parametrize('target', TARGETS)
@pytest.mark.parametrize(
  ('axes', 'pairs'),
  [
    # 4 blocks of responses with 2 of prompts, and with those up to their own.
    ((2, 2, 1), (8, 10)),
    ((1, 2, 2), (8, 10)),
    # 2 blocks on each device, with 2 of prompts and all 4 of responses.
    ((2, 1, 1, 2), (4, 8)),
  ],
)
def test_blocks_of_attention_wait_for_no_other_device(toy, target, axes, pairs):
  """The loops of an update with plain attention hold no collective."""
  rollout = dataclasses.replace(
    LONG, max_prompt_tokens=256, max_response_tokens=512
  )
  found = lowered(
    target,
    toy.get_method('grpo'),
    rollout,
    axes,
    microbatch_prompts=16,
    attention='plain',
  )
  text = found['update'].compile().as_text() or ''
  for trips in pairs:
    assert trips in collectives.trips(text)
    assert collectives.in_loops(text, devices=4, trips=trips) == []
