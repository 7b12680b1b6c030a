"""The decorator of pieces.

A piece is a frozen dataclass of hyperparameters. Float fields are leaves of its
pytree, so that new values need no new compilation; all others are static. Its
`role` names its place in a Method.
"""

from typing import TypeVar, dataclass_transform

from flax import struct

from rl_jax.checks import checked
from rl_jax.types import static

_Piece = TypeVar('_Piece')


@dataclass_transform(
  kw_only_default=True,
  frozen_default=True,
  field_specifiers=(static, struct.field),
)
def piece(cls: type[_Piece]) -> type[_Piece]:
  """Class decorator: a frozen dataclass and pytree with checked fields.

  Fields with ranges and choices are written by `checks.ranged` and
  `checks.chosen`; construction raises ValueError for values outside.
  """
  return struct.dataclass(checked(cls), kw_only=True)
