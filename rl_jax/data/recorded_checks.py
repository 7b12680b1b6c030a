"""Checks whether rows from data fit the rollout and the method of a run."""

from typing import Any

from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig


def reads_mismatched(method: Method) -> bool:
  """Returns whether a piece needs a row with the response to another prompt."""
  return any(piece.mismatched for _, piece in method.pieces())


def check_recorded_rollout(
  task: Any, rollout: RolloutConfig, method: Method, *, on_device: bool
) -> None:
  """Raises ValueError if rows from data and the method do not fit.

  on_device: rewards of samples come from a device verifier.
  """
  count = rollout.recorded_prompts
  if count > rollout.num_prompts:
    raise ValueError(
      f'rollout.recorded_prompts = {count} is more than rollout.num_prompts = '
      f'{rollout.num_prompts}'
    )
  if not count:
    for path, piece in method.pieces():
      if piece.from_data:
        raise ValueError(
          f'method.{path} learns from responses of data, which '
          'rollout.recorded_prompts = 0 does not read: set it, as in '
          'configs/worlds/preferences.py. For samples there are the pairs '
          'BestWorst '
          'and AllPairs'
        )
    return
  if count == 1 and reads_mismatched(method):
    raise ValueError(
      'rollout.recorded_prompts = 1, but the method reads the response to '
      'another prompt of the batch: set it to 2 or more'
    )
  if rollout.turns is not None and not task.supports('recorded'):
    raise ValueError(
      f'rollout.recorded_prompts = {count} with rollout.turns: the data of '
      f'{type(task).__name__} hold no episodes'
    )
  if rollout.turns is not None and count < rollout.num_prompts:
    raise ValueError(
      f'rollout.recorded_prompts = {count} with rollout.turns: no batch mixes '
      f'recorded and played episodes; set it to {rollout.num_prompts}'
    )
  for name in ('group_filter', 'rollout'):
    if method.slot(name) is not None:
      raise ValueError(
        f'method.{name} draws further samples, so rollout.recorded_prompts = '
        f'{count} must be 0'
      )
  if on_device and count < rollout.num_prompts:
    raise ValueError(
      'verifier.on_device = True with a mixture of data and samples: set it '
      'to False'
    )


def check_recorded(task: Any, group_size: int, method: Method) -> None:
  """Raises ValueError if groups are not those of the data; reads the data.

  A group of one is the first response only: of a pair the chosen one.
  """
  more = reads_mismatched(method)
  if group_size == 1 and not more:
    return
  responses = task.num_recorded
  size = responses + more
  if group_size != size:
    for path, piece in method.pieces():
      if responses < piece.min_group_size:
        raise ValueError(
          f'method.{path} compares {piece.min_group_size} responses to a '
          f'prompt, but the data of {type(task).__name__} have {responses}'
        )
    one_more = ' and the method adds the response to another prompt'
    raise ValueError(
      f'rollout.group_size = {group_size}, but the data of '
      f'{type(task).__name__} have {responses} responses to a prompt'
      f'{one_more * more}: set it to {size}'
    )
