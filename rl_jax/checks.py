"""Ranges and choices of dataclass fields; imports no JAX.

    @dataclasses.dataclass(frozen=True)
    @checked
    class Clip:
      low: float = ranged(0.2, 0.0, 1.0)
      form: str = chosen('token', ('token', 'sequence'))

`Clip(low=2.0)` raises ValueError: Clip.low = 2.0 is outside [0.0, 1.0].
"""

import dataclasses
import sys
import typing
from typing import Any

RANGE, CHOICES = 'range', 'choices'  # keys of a field's metadata
INT32 = 2**31 - 1  # the largest size and count of JAX's default integers


def ranged(
  default: Any = dataclasses.MISSING,
  low: float | None = None,
  high: float | None = None,
  *,
  open_low: bool = False,
  open_high: bool = False,
  static: bool = False,
) -> Any:
  """A field that holds a number in [low, high]; None is no limit.

  An open side excludes its limit. static: part of the compiled program, not a
  leaf of the pytree.
  """
  limits = (low, high, open_low, open_high)
  metadata = {RANGE: limits, 'pytree_node': not static}
  return dataclasses.field(default=default, metadata=metadata)


def chosen(default: Any, choices: tuple[str, ...]) -> Any:
  """A field that holds one of the choices; always static."""
  metadata = {CHOICES: tuple(choices), 'pytree_node': False}
  return dataclasses.field(default=default, metadata=metadata)


def checked(cls: type) -> type:
  """Class decorator, below that of the dataclass: construction checks fields.

  The class's own __post_init__, if it has one, runs after the checks.
  """
  own = getattr(cls, '__post_init__', None)

  def __post_init__(self):
    check_fields(self)
    if own is not None:
      own(self)

  cls.__post_init__ = __post_init__
  return cls


def check_fields(instance: Any) -> None:
  """Raises ValueError for a value that its field does not allow.

  That is one outside its range or choices, and an object in place of a tuple.
  """
  for field in dataclasses.fields(instance):
    if RANGE in field.metadata:
      low, high, open_low, open_high = field.metadata[RANGE]
      check_range(
        *(instance, field.name, low, high),
        open_low=open_low,
        open_high=open_high,
      )
    elif CHOICES in field.metadata:
      check_choice(instance, field.name, field.metadata[CHOICES])
    elif tuple in (field.type, typing.get_origin(field.type)):
      _check_tuple(instance, field.name)


def _check_tuple(instance, field):
  value = getattr(instance, field)
  if dataclasses.is_dataclass(value):  # one where several may be
    raise ValueError(
      f'{type(instance).__name__}.{field}: expected a tuple, got {value!r} '
      f'({type(value).__name__})'
    )


def check_range(
  instance: Any,
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
  value = getattr(instance, field)
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
      f'{type(instance).__name__}.{field} = {value!r} is outside '
      f'{left}{low_text}, {high_text}{right}'
    )


def check_numbers(instance: Any) -> None:
  """Raises ValueError for a bool, int or finite float field that holds none.

  For classes whose fields come from files; no leaf of a pytree among them.
  """
  for field in dataclasses.fields(instance):
    value, kind = getattr(instance, field.name), field.type
    good, what = True, f'of type {getattr(kind, "__name__", kind)}'
    if kind is float:
      most, what = sys.float_info.max, 'a finite number'
      good = type(value) in (int, float) and -most <= value <= most
    elif kind in (int, bool):
      good = type(value) is kind
    if not good:
      name = f'{type(instance).__name__}.{field.name}'
      raise ValueError(f'{name} = {value!r:.80} is not {what}')


def check_choice(instance: Any, field: str, choices: tuple[str, ...]) -> None:
  """Raises ValueError naming the choices if the field is none of them."""
  value = getattr(instance, field)
  if value not in choices:
    raise ValueError(
      f'{type(instance).__name__}.{field} = {value!r} is none of '
      + ', '.join(choices)
    )
