"""Ranges and choices of configuration fields; imports no JAX."""

from typing import Any


def check_range(
  piece: Any,
  field: str,
  low: float | None = None,
  high: float | None = None,
  *,
  open_low: bool = False,
  open_high: bool = False,
) -> None:
  """Raises ValueError naming field, value and range if it lies outside.

  Anything but a Python number passes: unflattening a pytree runs the
  constructor with tracers, and None means that the field is switched off.
  """
  value = getattr(piece, field)
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    return
  below = low is not None and (value <= low if open_low else value < low)
  above = high is not None and (value >= high if open_high else value > high)
  if below or above or value != value:
    left = '(' if open_low or low is None else '['
    right = ')' if open_high or high is None else ']'
    low_text = '-inf' if low is None else low
    high_text = 'inf' if high is None else high
    raise ValueError(
      f'{type(piece).__name__}.{field} = {value!r} is outside '
      f'{left}{low_text}, {high_text}{right}'
    )


def check_choice(piece: Any, field: str, choices: tuple[str, ...]) -> None:
  """Raises ValueError naming the choices if the field is none of them."""
  value = getattr(piece, field)
  if value not in choices:
    raise ValueError(
      f'{type(piece).__name__}.{field} = {value!r} is none of '
      + ', '.join(choices)
    )
