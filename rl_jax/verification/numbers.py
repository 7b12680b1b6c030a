"""Numbers by name that code of a task has returned."""

from collections.abc import Mapping
import math
from typing import Any

MOST = 1e12  # squares of it, summed over many rows, are finite in float32


def check_numbers(components: Any, origin: str) -> dict[str, float]:
  """Python floats in [-MOST, MOST] by name, or ValueError naming another."""
  if not isinstance(components, Mapping):
    raise ValueError(
      f'{origin} returned {type(components).__name__}, not a dict of components'
    )
  checked = {}
  for name, value in components.items():
    is_number = (
      hasattr(value, '__float__') and getattr(value, 'shape', ()) == ()
    )
    if not isinstance(name, str) or not is_number:
      raise ValueError(
        f'component {name!r} is {type(value).__name__}, not a number'
      )
    try:
      checked[name] = float(value)
    except OverflowError:  # of a whole number
      checked[name] = math.inf if value > 0 else -math.inf
    if not -MOST <= checked[name] <= MOST:
      raise ValueError(
        f'component {name!r} is {checked[name]}, not in [-{MOST:g}, {MOST:g}]'
      )
  return checked
