"""Each platform has its choices, and refuses others."""

import dataclasses
import pathlib
import re
import types

import jax
import pytest

from configs.methods import grpo
from configs.worlds import arithmetic
from rl_jax import models, serialization, worlds
from rl_jax.models import attention_kernels
from rl_jax.models import platform as platform_lib
from rl_jax.models.source import ModelSource
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime.platform import Platform

CPU, TPU, ROCM = Platform('cpu'), Platform('tpu'), Platform('rocm')
TURING, AMPERE = Platform('cuda', (7, 5)), Platform('cuda', (8, 0))
HOPPER = Platform('cuda', (9, 0))


@pytest.mark.parametrize(
  'platform, dtype',
  [
    (CPU, 'float32'),
    (TURING, 'float32'),
    (Platform('cuda'), 'float32'),
    (AMPERE, 'bfloat16'),
    (HOPPER, 'bfloat16'),
    (ROCM, 'bfloat16'),
    (TPU, 'bfloat16'),
  ],
)
def test_platforms_that_have_bfloat16_compute_in_it(platform, dtype):
  """The default."""
  assert platform_lib.choose_dtype('auto', platform)[0] == dtype
  assert platform_lib.choose_dtype('float32', platform)[0] == 'float32'
  assert platform_lib.choose_dtype('bfloat16', platform)[0] == 'bfloat16'


def fake_gpu(version='cuda 13', **attributes):
  """The parts of a jax.Device that Platform.of reads."""
  client = types.SimpleNamespace(platform_version=version)
  return types.SimpleNamespace(platform='gpu', client=client, **attributes)


@pytest.mark.parametrize(
  'device, platform, dtype',
  [
    (fake_gpu(compute_capability='7.5'), TURING, 'float32'),
    (fake_gpu(compute_capability='8.0'), AMPERE, 'bfloat16'),
    (
      fake_gpu(compute_capability='12.0'),
      Platform('cuda', (12, 0)),
      'bfloat16',
    ),
    (fake_gpu(), Platform('cuda'), 'float32'),
    (fake_gpu('rocm 7', compute_capability='gfx942'), ROCM, 'bfloat16'),
  ],
)
def test_the_platform_of_a_gpu_is_that_of_its_capability(
  device, platform, dtype
):
  """Before compute capability 8.0 there is no bfloat16."""
  assert Platform.of(device) == platform
  assert platform_lib.choose_dtype('auto', Platform.of(device))[0] == dtype


@pytest.mark.parametrize(
  'platform, dtype, head_size, kernel, reason',
  [
    (CPU, 'bfloat16', 64, 'plain', 'no kernel for cpu'),
    (ROCM, 'bfloat16', 64, 'plain', 'no kernel for rocm'),
    (AMPERE, 'bfloat16', 64, 'cudnn', 'fits'),
    (AMPERE, 'float16', 128, 'cudnn', 'fits'),
    (AMPERE, 'bfloat16', 136, 'plain', 'a multiple of 8 up to 128'),
    (HOPPER, 'bfloat16', 136, 'cudnn', 'fits'),
    (HOPPER, 'bfloat16', 264, 'plain', 'a multiple of 8 up to 256'),
    (HOPPER, 'bfloat16', 60, 'plain', 'this is 60'),
    (HOPPER, 'float32', 64, 'plain', 'the compute dtype is float32'),
    (TURING, 'bfloat16', 64, 'plain', 'this is 7.5'),
    (TPU, 'bfloat16', 128, 'splash', 'fits'),
    (TPU, 'float32', 64, 'splash', 'fits'),
    (TPU, 'bfloat16', 32, 'plain', 'multiple of 64'),
  ],
)
def test_attention_is_chosen_with_a_reason(
  platform, dtype, head_size, kernel, reason
):
  """By what the kernels are documented to take."""
  found, why = platform_lib.choose_attention('auto', platform, dtype, head_size)
  assert found == kernel
  assert reason in why
  plain = platform_lib.choose_attention('plain', platform, dtype, head_size)
  assert plain == ('plain', 'as configured')


def test_a_kernel_that_cannot_run_is_refused_with_what_is_allowed():
  """Before anything is compiled, from the function and from a run."""
  with pytest.raises(ValueError, match=r"'cudnn' .*tpu.* auto, plain, splash$"):
    platform_lib.choose_attention('cudnn', TPU, 'bfloat16', 64)
  source = ModelSource(config=models.presets.tiny(), attention='splash')
  with pytest.raises(ValueError, match=r"'splash' .*is cpu.* auto, plain$"):
    policy_lib.load(source, worlds.Arithmetic(), 0, None)
  with pytest.raises(ValueError, match=r'mesh.sequence = 2 .* auto, plain$'):
    platform_lib.choose_attention('splash', TPU, 'bfloat16', 64, spans=2)
  with pytest.raises(ValueError, match="'flash'.*auto, plain"):
    ModelSource(attention='flash')
  with pytest.raises(ValueError, match='compute_dtype'):
    ModelSource(compute_dtype='int8')


def test_a_library_that_refuses_means_plain_or_an_error(monkeypatch):
  """jaxlib for CPU has no cuDNN, which a process on a GPU would find out."""
  monkeypatch.setattr(Platform, 'of_process', lambda: HOPPER)
  monkeypatch.setattr(
    attention_kernels, 'refusal', lambda name, *_: f'{name}: no cuDNN'
  )
  model = dataclasses.replace(models.presets.tiny(), head_size=64)
  found = platform_lib.resolve(model, platform=HOPPER)
  assert (found.compute_dtype, found.attention) == ('bfloat16', 'plain')
  with pytest.raises(ValueError, match='cuDNN.*auto, plain'):
    platform_lib.resolve(model, attention='cudnn', platform=HOPPER)


def test_a_plan_does_not_depend_on_the_libraries_of_this_machine():
  """A plan for GPUs has their kernel on a machine without cuDNN."""
  model = dataclasses.replace(models.presets.tiny(), head_size=64)
  found = platform_lib.resolve(model, platform=HOPPER)
  assert (found.compute_dtype, found.attention) == ('bfloat16', 'cudnn')
  assert platform_lib.resolve(model, platform=TPU).attention == 'splash'
  assert platform_lib.resolve(model, platform=TPU, spans=2).attention == 'plain'


def test_kernels_take_windows_and_splash_takes_caps():
  """Gemma and Mistral on TPU; on an NVIDIA GPU scores with a cap are plain."""
  model = dataclasses.replace(models.presets.tiny(), head_size=64)
  windowed = dataclasses.replace(model, window=4, windowed=(0,))
  capped = dataclasses.replace(windowed, attention_cap=50.0)
  for limited in (windowed, capped):
    assert platform_lib.resolve(limited, platform=TPU).attention == 'splash'
  found = platform_lib.choose_attention(
    'auto', HOPPER, 'bfloat16', 64, capped=True
  )
  assert found == ('plain', 'cudnn: it has no cap of scores')
  with pytest.raises(ValueError, match='no cap of scores'):
    platform_lib.choose_attention('cudnn', HOPPER, 'bfloat16', 64, capped=True)


def test_ragged_products_are_for_devices_that_have_kernels():
  """TPUs, and GPUs in bfloat16; a model without experts has none."""
  dense = models.presets.tiny()
  model = dataclasses.replace(dense, num_experts=4, experts_per_token=2)
  ways = {CPU: 'all', TPU: 'chosen', TURING: 'all', HOPPER: 'chosen'}
  for platform, way in ways.items():
    found = platform_lib.resolve(model, attention='plain', platform=platform)
    assert found.expert_products == way
  found = platform_lib.resolve(model, 'float32', 'plain', platform=HOPPER)
  assert found.expert_products == 'all'
  assert platform_lib.resolve(dense, platform=TPU).expert_products == 'all'


def test_here():
  """The platform of this device, and what a run writes down for 'auto'."""
  assert Platform.of(jax.devices('cpu')[0]) == CPU
  config = assembly.with_compute_dtype(arithmetic.get_config(grpo.get_method()))
  assert config.model.compute_dtype == 'float32'
  assert config.model.attention == 'auto'


def test_only_the_runtime_asks_the_process_where_it_runs():
  """A program for a TPU may be made on a machine without one."""
  root = pathlib.Path(models.__file__).parents[1]
  asking = [
    path.relative_to(root).as_posix()
    for path in sorted(root.rglob('*.py'))
    if re.search(r'default_backend\(|jax\.devices\(\)\[0\]', path.read_text())
  ]
  assert asking == ['records/checkpoints/leaves.py', 'runtime/platform.py']


def test_a_model_is_read_back_with_its_platform():
  """Runs write down what they computed with."""
  model = dataclasses.replace(models.presets.tiny(), platform=HOPPER)
  text = serialization.to_json(model)
  assert serialization.from_json(text) == model
