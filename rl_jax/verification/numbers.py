"""Numbers by name that code of a task has returned."""

from collections.abc import Mapping
from typing import Any


def check_numbers(components: Any, origin: str) -> dict[str, float]:
  """Finite Python floats by name, or ValueError that names what is not one."""
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
    checked[name] = float(value)
    if checked[name] - checked[name] != 0.0:
      raise ValueError(f'component {name!r} is {checked[name]}')
  return checked
