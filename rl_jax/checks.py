"""Ranges and choices of dataclass fields, and names that classes declare.

Imports no JAX.

    @dataclasses.dataclass(frozen=True)
    @checked
    class Clip:
      low: float = ranged(0.2, 0.0, 1.0)
      form: str = chosen('token', ('token', 'sequence'))

`Clip(low=2.0)` raises ValueError: Clip.low = 2.0 is outside [0.0, 1.0].

Training computes with float32, so a number that this rounds to an open limit or
to infinity is outside as well: a temperature of 1e-50 would be 0.
"""

from collections.abc import Callable, Collection, Iterable
import dataclasses
import difflib
import inspect
import math
import numbers
import struct
import sys
import types
import typing
from typing import Any

RANGE, CHOICES = 'range', 'choices'  # keys of a field's metadata
INT32 = 2**31 - 1  # the largest size and count of JAX's default integers
_SMALLEST = 2.0**-126  # of float32, without those that devices flush to 0


def ranged(
  default: Any = dataclasses.MISSING,
  low: float | None = None,
  high: float | None = None,
  *,
  open_low: bool = False,
  open_high: bool = False,
  static: bool = False,
) -> Any:
  """A field that holds a finite number in [low, high]; None is not a limit.

  An open side excludes its limit. An infinite limit that is not open includes
  infinity: high=math.inf where that switches something off. static: part of the
  compiled program, not a leaf of the pytree.
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

  That is one outside its range or choices, a float that is not finite where
  there is no range, and an object in place of a tuple.
  """
  for field in dataclasses.fields(instance):
    if RANGE in field.metadata:
      low, high, open_low, open_high = field.metadata[RANGE]
      check_range(
        instance,
        field.name,
        low,
        high,
        open_low=open_low,
        open_high=open_high,
      )
    elif CHOICES in field.metadata:
      check_choice(instance, field.name, field.metadata[CHOICES])
    elif tuple in (field.type, typing.get_origin(field.type)):
      _check_tuple(instance, field, values(instance)[field.name])
    elif _holds_float(field.type):
      check_range(instance, field.name)


def _check_tuple(instance, field, value):
  name = f'{type(instance).__name__}.{field.name}'
  if dataclasses.is_dataclass(value):  # one where several may be
    raise ValueError(
      f'{name}: expected a tuple, got {value!r} ({type(value).__name__})'
    )
  if isinstance(value, tuple) and any(
    _holds_float(kind) for kind in typing.get_args(field.type)
  ):
    for number, one in enumerate(value):
      _check_number(f'{name}[{number}]', one, (None, None, False, False))


def _holds_float(kind):
  """Returns whether a type is float, or one of several that are."""
  if isinstance(kind, types.UnionType):
    return float in typing.get_args(kind)
  return kind is float


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

  Anything but a number of Python or NumPy passes: unflattening a pytree runs
  the constructor with tracers, and None means that the field is switched off.
  """
  name = f'{type(instance).__name__}.{field}'
  limits = (low, high, open_low, open_high)
  _check_number(name, getattr(instance, field), limits)


def _check_number(name, value, limits):
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    return
  low, high, open_low, open_high = limits
  low, open_low = (-math.inf, True) if low is None else (low, open_low)
  high, open_high = (math.inf, True) if high is None else (high, open_high)
  number: Any = value  # numbers.Real has no comparison that checkers know
  inside = low <= number <= high
  kept = _float32(value)
  if inside and not (
    (open_low and kept <= low)
    or (open_high and kept >= high)
    or (math.isinf(kept) and not math.isinf(value))
  ):
    return
  text = (
    f'{name} = {value!r:.80} is outside {"(" if open_low else "["}{low}, '
    f'{high}{")" if open_high else "]"}'
  )
  if inside and kept != value:
    text += f': as float32 it is {kept}'
  raise ValueError(text)


def _float32(value):
  """Returns what the devices make of a number; those close to 0 become 0."""
  try:
    (kept,) = struct.unpack('f', struct.pack('f', value))
  except (OverflowError, struct.error):  # beyond float32; beyond float64
    return math.inf if value > 0 else -math.inf
  return 0.0 if abs(kept) < _SMALLEST else kept


def check_numbers(instance: Any) -> None:
  """Raises ValueError for a bool, int or finite float field that holds none.

  For classes whose fields come from files; no leaf of a pytree among them.
  """
  for field in dataclasses.fields(instance):
    value, kind = values(instance)[field.name], field.type
    good, what = True, f'of type {kind}'
    if kind is float:
      most, what = sys.float_info.max, 'a finite number'
      good = type(value) in (int, float) and -most <= value <= most
    elif kind in (int, bool):
      good, what = type(value) is kind, f'of type {kind.__name__}'
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


def where(cls: type) -> str:
  """The class, with the module that defines it."""
  return f'{cls.__name__} of {cls.__module__}'


def own_fields(cls: type) -> set[str]:
  """Names that the body of a class annotates, but for class variables."""
  annotations = vars(cls).get('__annotations__', {})
  return {name for name, x in annotations.items() if 'ClassVar' not in str(x)}


def own_names(cls: type) -> list[str]:
  """Public names that the body of a class defines or annotates."""
  own = vars(cls)
  names = dict.fromkeys((*own, *own.get('__annotations__', {})))
  return [name for name in names if not name.startswith('_')]


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
  """The known name that is most like this one, '' if none is alike."""
  return next(iter(difflib.get_close_matches(name, known, 1, cutoff)), '')


def misspelt(name: str, known: Collection[str]) -> str:
  """The known name that this one almost certainly means, '' if there is none.

  A plural of a known name means something else, and slips of the pen are rarely
  in the first letter.
  """
  if name in known:
    return ''
  alike = [one for one in known if one[0] == name[0] and name != f'{one}s']
  swapped = [one for one in alike if sorted(one) == sorted(name)]
  return swapped[0] if swapped else nearest(name, alike, cutoff=0.81)


def check_defaults(cls: type, known: Collection[str]) -> None:
  """Raises TypeError for a field without default that is named as one of them.

  known: names that base classes define. Python would take the value of the base
  class for a default.
  """
  for name in sorted(own_fields(cls) & {*known} - set(vars(cls))):
    raise TypeError(
      f'{where(cls)}: the field {name!r} has the name of a declaration of its '
      'base class: give it a default'
    )


def check_parameters(
  cls: type, name: str, form: Callable[[type], str] = lambda cls: ''
) -> None:
  """Raises TypeError if a method takes other arguments than that of a base.

  form: how the class writes it, for the end of the message.
  """
  base = next((x for x in cls.__mro__[1:] if name in vars(x)), object)
  function, declared = vars(cls).get(name), vars(base).get(name)
  if not (inspect.isfunction(function) and inspect.isfunction(declared)):
    return
  wanted = [*inspect.signature(declared).parameters.values()]
  found = [*inspect.signature(function).parameters.values()]
  if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
    return
  if len(found) != len(wanted):
    names = ', '.join(p.name for p in wanted)
    given = ', '.join(p.name for p in found)
    raise TypeError(
      f'{where(cls)}: {name}({given}) should take ({names}){form(cls)}'
    )


def values(instance: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
  """Fields of a dataclass by name, as they are; names: those, None: all."""
  if names is None:
    names = (field.name for field in dataclasses.fields(instance))
  return {name: getattr(instance, name) for name in names}
