"""Checks of the fields of a rollout: they fit each other, method and task."""

from typing import Any

from rl_jax.data.recorded_checks import check_recorded_rollout
from rl_jax.episodes import partners, turns
from rl_jax.judging.learned_checks import check_learned
from rl_jax.method import Method
from rl_jax.pieces.logits.transforms import policy_names
from rl_jax.rollouts import lagged, windows


def check(config: Any) -> None:
  """Raises ValueError, of an ExperimentConfig, naming two fields."""
  rollout, method = config.rollout, config.method
  turns.check(config.task, rollout, method)
  turns.check_order(config)
  check_recorded_rollout(
    config.task, rollout, method, on_device=config.verifier.on_device
  )
  windows.check(rollout, method)
  check_learned(config)
  partners.check(config)
  lagged.check(rollout, config.guards.max_logp_gap)
  _check_parts(rollout, method)
  _check_round(rollout, method)
  _check_cache(rollout)
  _check_places(config.task, rollout)
  _check_devices(config)
  if config.task.traits.rewrites and config.mesh.sequence > 1:
    name = type(config.task).__name__
    raise ValueError(
      f'mesh.sequence = {config.mesh.sequence}, but {name} rewrites contexts, '
      'which needs whole responses: set it to 1'
    )


def _check_cache(rollout: Any) -> None:
  if rollout.cache_tokens is not None and rollout.speculative is not None:
    raise ValueError(
      f'rollout.cache_tokens = {rollout.cache_tokens} with '
      'rollout.speculative: their rows have their own caches; set '
      'rollout.cache_tokens to null'
    )


def _check_places(task: Any, rollout: Any) -> None:
  """Raises ValueError if rows of episodes cannot share a cache."""
  played, most = rollout.turns is not None, rollout.max_response_tokens
  cached, parked = rollout.cache_tokens, rollout.host_cache_tokens
  if parked is not None and (cached is None or not played):
    lacks = 'turns' if cached is not None else 'cache_tokens'
    raise ValueError(
      f'rollout.host_cache_tokens = {parked} with rollout.{lacks} = None: rows '
      'move to the host only if episodes share the cache of the devices; set '
      'it to null, or both'
    )
  if cached is None or not played:
    return
  if cached < most:
    raise ValueError(
      f'rollout.cache_tokens = {cached}: expected at least '
      f'rollout.max_response_tokens = {most}, as a row of an episode has room '
      'for all of its tokens'
    )
  if parked is not None and parked < 2 * most:
    raise ValueError(
      f'rollout.host_cache_tokens = {parked}: expected at least twice '
      f'rollout.max_response_tokens = {most}, as one row leaves before another '
      'one returns'
    )
  if task.traits.players > 1:
    raise ValueError(
      f'rollout.cache_tokens = {cached}, but {type(task).__name__} has '
      f'{task.traits.players} players, who need their rows in turn: set it to '
      'null'
    )


def _check_devices(config: Any) -> None:
  devices, rollout = config.mesh.rollout_devices, config.rollout
  method = config.method
  if not devices:
    return
  if not rollout.staleness:
    raise ValueError(
      f'mesh.rollout_devices = {devices} with rollout.staleness = 0: samplers '
      'and trainer would wait for each other; set rollout.staleness to 1'
    )
  if rollout.num_prompts % devices:
    raise ValueError(
      f'mesh.rollout_devices = {devices} must divide rollout.num_prompts = '
      f'{rollout.num_prompts}'
    )
  for name, value in (
    ('rollout.parts', rollout.parts - 1),
    ('rollout.turns', rollout.turns),
    ('rollout.window_tokens', rollout.window_tokens),
    ('rollout.recorded_prompts', rollout.recorded_prompts),
    ('rollout.speculative', rollout.speculative),
    ('rollout.cache_tokens', rollout.cache_tokens),
    ('judges', config.judges),
    ('method.rollout', method.rollout),
    ('policies of method.logits', policy_names(method.logits)),
  ):
    if value:
      raise ValueError(
        f'mesh.rollout_devices = {devices} with {name}: only plain samples are '
        'drawn on their own devices; set mesh.rollout_devices to 0'
      )


def _check_round(rollout: Any, method: Method) -> None:
  count = rollout.round_prompts
  if count is None:
    return
  if count < rollout.num_prompts:
    raise ValueError(
      f'rollout.round_prompts = {count} is less than rollout.num_prompts = '
      f'{rollout.num_prompts}'
    )
  if method.group_filter is None:
    raise ValueError(
      f'rollout.round_prompts = {count} without method.group_filter: what is '
      'not trained on would be sampled for nothing; set it to null'
    )
  for name, value in (
    ('rollout.parts', rollout.parts - 1),
    ('rollout.turns', rollout.turns),
    ('rollout.window_tokens', rollout.window_tokens),
    ('rollout.recorded_prompts', rollout.recorded_prompts),
    ('method.rollout', method.rollout),
  ):
    if value:
      raise ValueError(
        f'rollout.round_prompts = {count} with {name}: only plain samples are '
        'drawn in larger rounds; set rollout.round_prompts to null'
      )


def _check_parts(rollout: Any, method: Method) -> None:
  if rollout.parts == 1:
    return
  if rollout.num_prompts % rollout.parts:
    raise ValueError(
      f'rollout.parts = {rollout.parts} must divide rollout.num_prompts = '
      f'{rollout.num_prompts}'
    )
  for name, value in (
    ('rollout.turns', rollout.turns),
    ('rollout.window_tokens', rollout.window_tokens),
    ('rollout.recorded_prompts', rollout.recorded_prompts or None),
    ('method.rollout', method.rollout),
  ):
    if value is not None:
      raise ValueError(
        f'rollout.parts = {rollout.parts} with {name}: only plain samples are '
        'verified part by part; set rollout.parts to 1'
      )
