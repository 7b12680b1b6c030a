"""Number types and kernels of a run: chosen by platform, with the reason.

  compute_dtype  bfloat16 on TPU and on GPUs that have it, float32 elsewhere
  attention      'cudnn' on NVIDIA GPUs, 'splash' on TPU, 'plain' elsewhere and
                 where these cannot run
  expert_products  of a model with experts 'chosen' where kernels compute ragged
                 products, on TPU and in bfloat16 on CUDA; 'all' elsewhere

Parameters, log-softmax, statistics, losses and gradient sums are not affected:
they keep param_dtype and float32.
"""

import dataclasses
import functools

from absl import logging

from rl_jax.models import (
  attention_kernels,
  experts,
  ragged_products,
  transformer,
)
from rl_jax.runtime.platform import Platform

AUTO, PLAIN, CUDNN, SPLASH = 'auto', 'plain', 'cudnn', 'splash'
ATTENTION = (AUTO, PLAIN, CUDNN, SPLASH)
COMPUTE_DTYPES = (AUTO, *transformer.DTYPES)
HALF = ('bfloat16', 'float16')
AMPERE = (8, 0)  # the first compute capability with bfloat16


def choose_dtype(wanted: str, platform: Platform) -> tuple[str, str]:
  """(compute dtype, reason)."""
  if wanted != AUTO:
    return wanted, 'as configured'
  if platform.name == 'cuda' and platform.capability < AMPERE:
    return (
      'float32',
      f'compute capability {_capability(platform)} has no bfloat16',
    )
  if platform.name in ('cuda', 'rocm', 'tpu'):
    return 'bfloat16', f'{platform.name} multiplies matrices in it'
  return 'float32', f'{platform.name} has no fast bfloat16'


def choose_attention(
  wanted: str,
  platform: Platform,
  dtype: str,
  head_size: int,
  spans: int = 1,
  capped: bool = False,
) -> tuple[str, str]:
  """(kernel of training, scoring and prefill, reason).

  Sequence lengths do not matter: rows are padded to what a kernel takes.

  Args:
    spans: parts of a response on different devices, mesh.sequence.
    capped: scores of attention have a cap.

  Raises: ValueError if the wanted kernel cannot run.
  """
  general = None
  if spans > 1:
    general = (
      f'it needs whole responses, and mesh.sequence = {spans} splits them'
    )
  uncapped = 'it has no cap of scores' if capped else None
  obstacles = {
    CUDNN: general or uncapped or _cudnn_obstacle(platform, dtype, head_size),
    SPLASH: general or _splash_obstacle(platform, head_size),
  }
  if wanted == PLAIN:
    return PLAIN, 'as configured'
  if wanted == AUTO:
    native = {'cuda': CUDNN, 'tpu': SPLASH}.get(platform.name)
    if native is None:
      return PLAIN, f'no kernel for {platform.name}'
    obstacle = obstacles[native]
    return (PLAIN, f'{native}: {obstacle}') if obstacle else (native, 'fits')
  if obstacles[wanted]:
    allowed = [AUTO, PLAIN, *(k for k in obstacles if not obstacles[k])]
    raise ValueError(
      f'model.attention = {wanted!r} cannot run here: {obstacles[wanted]}. '
      f'Allowed: {", ".join(allowed)}'
    )
  return wanted, 'as configured'


def _cudnn_obstacle(platform, dtype, head_size) -> str | None:
  """Limits of cuDNN's fused attention, forward and backward."""
  if platform.name != 'cuda':
    return f'it needs an NVIDIA GPU, and this is {platform.name}'
  if platform.capability < AMPERE:
    found = _capability(platform)
    return f'it needs compute capability 8.0, and this is {found}'
  if dtype not in HALF:
    return f'it needs {" or ".join(HALF)}, and the compute dtype is {dtype}'
  largest = 256 if platform.capability >= (9, 0) else 128
  if head_size % 8 or head_size > largest:
    return (
      f'it needs a head size that is a multiple of 8 up to {largest}, and '
      f'this is {head_size}'
    )
  return None


def _capability(platform: Platform) -> str:
  return '.'.join(map(str, platform.capability)) or 'unknown'


def _splash_obstacle(platform, head_size) -> str | None:
  """Limits of the Pallas kernel: head sizes whose programs lower for TPU."""
  if platform.name != 'tpu':
    return f'it needs a TPU, and this is {platform.name}'
  if head_size % 64:
    return (
      'it is used with head sizes that are a multiple of 64, and this is '
      f'{head_size}'
    )
  return None


def resolve(
  model: transformer.ModelConfig,
  compute_dtype: str = AUTO,
  attention: str = AUTO,
  *,
  platform: Platform,
  spans: int = 1,
) -> transformer.ModelConfig:
  """The model with what this platform computes with; logs every choice once.

  Nothing is compiled. If the installed libraries do not support a kernel (cuDNN
  is missing, for example), 'auto' takes 'plain'; otherwise it is an error. What
  is planned for another platform than that of this process does not depend on
  the libraries of this machine. spans: of the mesh, mesh.spans.

  Raises: ValueError if model.attention asks for a kernel that cannot run.
  """
  dtype, why = choose_dtype(compute_dtype, platform)
  _log('compute_dtype', dtype, why)
  head_size = model.head_size
  causal = attention_kernels.Causal(model.window, model.attention_cap)
  kernel, why = choose_attention(
    attention, platform, dtype, head_size, spans, causal.cap is not None
  )
  refusal = None
  if platform.name == Platform.of_process().name:
    refusal = attention_kernels.refusal(kernel, dtype, head_size, causal)
  if refusal and attention == AUTO:
    kernel, why = PLAIN, f'{kernel}: {refusal}'
  elif refusal:
    raise ValueError(
      f'model.attention = {attention!r} cannot run here: {refusal}. '
      f'Allowed: {AUTO}, {PLAIN}'
    )
  _log('attention', kernel, why)
  ragged = platform.name == 'tpu' or ragged_products.runs(platform, dtype)
  chosen = model.num_experts and ragged
  return dataclasses.replace(
    model,
    platform=platform,
    compute_dtype=dtype,
    attention=kernel,
    expert_products=experts.CHOSEN if chosen else experts.ALL,
  )


@functools.cache
def _log(field: str, value: str, reason: str) -> None:
  logging.info('%s: %s (%s)', field, value, reason)
