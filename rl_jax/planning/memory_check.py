"""Checks memory before a run, and explains an out-of-memory error."""

from collections.abc import Generator
import contextlib
import dataclasses
import os

from absl import logging
import jax

from rl_jax.config import ExperimentConfig, on_devices, validate
from rl_jax.planning import memory_plan
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh
from rl_jax.runtime.platform import Platform

GB = 1e9


def advice(config: ExperimentConfig) -> str:
  """Settings that lower the peak, with their current values."""
  rollout, update = config.rollout, config.update
  groups = update.microbatch_prompts
  if groups is None:
    groups = f'None, that is {update.minibatch_prompts or rollout.num_prompts}'
  return (
    'What helps, with the values now:\n'
    f'  update.microbatch_prompts = {groups}: fewer groups a forward pass; '
    'the numbers stay the same\n'
    f'  update.microbatch_rows = {update.microbatch_rows}: fewer of the '
    f'{rollout.group_size} rows of a group; the numbers stay the same\n'
    f'  model.remat = {config.model.remat}: True keeps only the inputs of '
    'layers and computes the rest twice\n'
    f'  optimizer.moment_dtype = {config.optimizer.moment_dtype}: bfloat16 '
    'halves the first moment of AdamW\n'
    f'  model.param_dtype = {config.model.param_dtype}: bfloat16 halves the '
    'copies of named policies; trained weights keep float32 master weights\n'
    f'  rollout.slots = {rollout.slots}: fewer rows at a time, a smaller '
    'cache; the numbers stay the same\n'
    f'  rollout.cache_tokens = {rollout.cache_tokens}: a cache for so many '
    'tokens of responses, which slots share\n'
    f'  evaluation.batch_prompts = {config.evaluation.batch_prompts} (x '
    f'num_samples = {config.evaluation.num_samples}): fewer rows at a time in '
    'evaluations\n'
    f'  rollout.num_prompts = {rollout.num_prompts} (x group_size = '
    f'{rollout.group_size}), rollout.max_response_tokens = '
    f'{rollout.max_response_tokens}: a smaller cache and fewer activations'
  )


def describe(plan: memory_plan.MemoryPlan) -> str:
  """One line: the parts of the plan in GB."""
  parts = [
    f'{name.replace("_", " ")} {value / GB:.3g}'
    for name, value in dataclasses.asdict(plan).items()
    if value
  ]
  return ', '.join(parts) + ' GB'


def device_limit() -> int | None:
  """Bytes that this process may use on one device, if the device tells.

  The devices of a CPU share the memory of the machine.
  """
  device = jax.local_devices()[0]
  if device.platform == 'cpu' and hasattr(os, 'sysconf'):
    whole = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    return whole // jax.local_device_count()
  stats = device.memory_stats()
  return None if not stats else stats.get('bytes_limit')


def check(config: ExperimentConfig, limit: int | None) -> None:
  """Compares the estimate with the limit, before anything is loaded.

  Warns if the peak does not fit: it is an estimate. Logs it without a limit,
  and nothing if the shape of the model is known only by reading its weights.

  Raises ValueError if what is exact, the parameters, their reference copy and
  the optimizer's state, is larger than the limit; and what validate raises.
  """
  config = on_devices(config, jax.device_count())
  validate(config)  # errors of the configuration come first
  model = policy_lib.planned_model(
    config.model, config.task, Platform.of_process(), config.mesh.sequence
  )
  if model is None:
    return
  plan = memory_plan.estimate(config, model, mesh.abstract_mesh(config.mesh))
  if limit is None or plan.peak <= limit:
    of = '' if limit is None else f' of {limit / GB:.3g} GB'
    logging.info('memory on a device: about %.3g GB%s', plan.peak / GB, of)
    return
  text = (
    f'each device would hold about {plan.peak / GB:.3g} GB and has '
    f'{limit / GB:.3g} GB ({describe(plan)})'
  )
  if plan.kept > limit:
    raise ValueError(
      f'{text}. What stays for the whole run is {plan.kept / GB:.3g} GB: '
      f'raise mesh.fsdp = {config.mesh.fsdp}, set model.lora_rank = '
      f'{config.model.lora_rank}, or take a smaller model'
    )
  logging.warning('%s. %s', text, advice(config))


@contextlib.contextmanager
def guarded(config: ExperimentConfig) -> Generator[None]:
  """Checks, then turns an out-of-memory error of XLA into one with advice.

  Raises MemoryError for RESOURCE_EXHAUSTED, ValueError without the devices of
  the mesh or the model of the path, and what `check` raises.
  """
  validate(config)
  assembly.make_mesh(config)
  policy_lib.check(config.model.path)
  check(config, device_limit())
  try:
    yield
  except jax.errors.JaxRuntimeError as error:
    if 'RESOURCE_EXHAUSTED' not in str(error):
      raise
    first = str(error).splitlines()[0][:300]
    raise MemoryError(
      f'the device is out of memory: {first}\n{advice(config)}'
    ) from error
