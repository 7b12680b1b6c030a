"""The difference of two methods, piece by piece."""

import dataclasses
from typing import Any

from rl_jax.method import PIECE_SLOTS, PIECE_TUPLES, Method

SLOTS = (*PIECE_TUPLES, *PIECE_SLOTS, 'selector', 'rollout', 'reference')


def differences(old: Method, new: Method) -> list[str]:
  """Lines: `-` piece only in old, `+` only in new, `~` field that changed.

  A `>` line lists pieces whose order changed.
  """
  lines = []
  for slot in SLOTS:
    before, after = _pieces(old, slot), _pieces(new, slot)
    for key in before:
      if key not in after:
        lines.append(f'- {slot}.{show(before[key])}')
    for key in after:
      if key not in before:
        lines.append(f'+ {slot}.{show(after[key])}')
      else:
        lines += _changed(f'{slot}.{key}', before[key], after[key])
    common = [key for key in before if key in after]
    reordered = [key for key in after if key in before]
    if common != reordered:
      lines.append(f'> {slot}: {", ".join(reordered)}')
  return lines


def show(value: Any) -> str:
  """A piece as its constructor call, other values as repr."""
  if not dataclasses.is_dataclass(value):
    return repr(value)
  fields = ', '.join(
    f'{field.name}={show(getattr(value, field.name))}'
    for field in dataclasses.fields(value)
    if getattr(value, field.name) is not None
  )
  return f'{type(value).__name__}({fields})'


def _pieces(method: Method, slot: str) -> dict[str, Any]:
  """The pieces of a slot by class name; repeated names end in #2, #3, ..."""
  found = getattr(method, slot)
  pieces: dict[str, Any] = {}
  for piece in found if isinstance(found, tuple) else (found,):
    if piece is None:
      continue
    name = type(piece).__name__
    repeats = sum(key.split('#')[0] == name for key in pieces)
    pieces[name if not repeats else f'{name}#{repeats + 1}'] = piece
  return pieces


def _changed(path: str, old: Any, new: Any) -> list[str]:
  """One line for each field of two pieces of the same class."""
  return [
    f'~ {path}.{field.name}: {show(before)} -> {show(after)}'
    for field in dataclasses.fields(new)
    if (before := getattr(old, field.name))
    != (after := getattr(new, field.name))
  ]
