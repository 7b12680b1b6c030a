"""Shared functions of the draws of a batch of prompts."""

from typing import Any


def check_fits(count: int, size: int) -> None:
  """Raises ValueError if `count` different prompts exceed the `size` of all."""
  if count > size:
    raise ValueError(
      f'a batch of {count} prompts cannot be drawn without replacement '
      f'from {size}'
    )


def check_levels(selector: str, levels: int, num_prompts: int) -> None:
  """Raises ValueError if there are fewer prompts than levels."""
  if num_prompts < levels:
    raise ValueError(
      f'{selector}.levels = {levels}: the task has {num_prompts} prompts, '
      'less than one a level'
    )


def check_places(selector: str, prompts: Any) -> None:
  """Raises ValueError if a skipped prompt shifts the places of others.

  selector: the class that reads what a prompt is from its place.
  """
  last = len(prompts) - 1
  skipped = prompts.example_id(last) - last
  if skipped:  # those after the last usable one shift nothing
    raise ValueError(
      f'method.selector: {selector} reads the level of a prompt from its '
      f"place, but rollout.overlong_prompt='skip' left out {skipped} "
      f'over-long prompts of split {prompts.split!r} before others; raise '
      'the limit of tokens, or filter the data'
    )
