"""Ranges and choices of fields, checked when an object is made."""

import dataclasses
import math

import numpy as np
import pytest

from rl_jax.checks import checked, chosen, ranged


@dataclasses.dataclass(frozen=True)
@checked
class Numbers:
  coef: float = ranged(0.1, 0.0)
  scale: float = ranged(1.0, 0.0, open_low=True)
  decay: float = ranged(0.9, 0.0, 1.0, open_high=True)
  gap: float | None = ranged(1.0, 0.0, math.inf)
  plain: float = 0.5
  maybe: float | None = None
  several: tuple[float, ...] = ()
  pairs: tuple[tuple[str, float], ...] = ()
  count: int = ranged(1, 1)


@pytest.mark.parametrize(
  'field, value, text',
  [
    ('coef', math.inf, 'Numbers.coef = inf is outside [0.0, inf)'),
    ('coef', np.float32(np.inf), 'inf) is outside [0.0, inf)'),
    ('coef', np.float64(-1), '-1.0) is outside [0.0, inf)'),
    ('coef', 1e39, '1e+39 is outside [0.0, inf): as float32 it is inf'),
    ('coef', 10**400, '000 is outside [0.0, inf): as float32 it is inf'),
    ('coef', -(10**400), '000 is outside [0.0, inf)'),
    ('scale', 1e-50, '1e-50 is outside (0.0, inf): as float32 it is 0.0'),
    ('scale', 1e-40, '1e-40 is outside (0.0, inf): as float32 it is 0.0'),
    ('decay', 1 - 1e-9, 'is outside [0.0, 1.0): as float32 it is 1.0'),
    ('gap', -math.inf, 'Numbers.gap = -inf is outside [0.0, inf]'),
    ('gap', math.nan, 'Numbers.gap = nan is outside [0.0, inf]'),
    ('plain', math.inf, 'Numbers.plain = inf is outside (-inf, inf)'),
    ('plain', math.nan, 'Numbers.plain = nan is outside (-inf, inf)'),
    ('maybe', -math.inf, 'Numbers.maybe = -inf is outside (-inf, inf)'),
    ('several', (1.0, math.nan), 'Numbers.several[1] = nan is outside'),
    ('count', math.inf, 'Numbers.count = inf is outside [1, inf)'),
  ],
)
def test_numbers_that_training_cannot_use_are_errors(field, value, text):
  """Infinity, and what float32 rounds to it or to an open limit."""
  with pytest.raises(ValueError) as error:
    Numbers(**{field: value})
  assert text in str(error.value)
  assert str(error.value).startswith(f'Numbers.{field}')
  assert len(str(error.value)) < 200


def test_numbers_that_training_can_use_pass():
  """Also infinity where it is named as a limit."""
  Numbers(gap=math.inf, coef=1e38, scale=1e-37, decay=1 - 1e-7, maybe=2)
  Numbers(coef=np.float32(0.5), count=2**40, several=(1, 2.5), plain=-1e30)


@dataclasses.dataclass(frozen=True)
@checked
class Example:
  share: float = ranged(0.5, 0.0, 1.0, open_low=True)
  count: int = ranged(1, 1, static=True)
  limit: float | None = ranged(None, high=2.0, open_high=True)
  form: str = chosen('token', ('token', 'row'))
  name: str = 'x'

  def __post_init__(self):
    if self.name == self.form:
      raise ValueError('Example.name is its form')


@pytest.mark.parametrize(
  'field, value, text',
  [
    ('share', 0, 'Example.share = 0 is outside (0.0, 1.0]'),
    ('share', float('nan'), 'Example.share = nan is outside (0.0, 1.0]'),
    ('count', 0, 'Example.count = 0 is outside [1, inf)'),
    ('limit', 2.0, 'Example.limit = 2.0 is outside (-inf, 2.0)'),
    ('form', 'word', "Example.form = 'word' is none of token, row"),
    ('name', 'token', 'Example.name is its form'),
  ],
)
def test_values_outside_are_errors(field, value, text):
  """The message names class, field, value and what is allowed."""
  with pytest.raises(ValueError) as error:
    Example(**{field: value})
  assert str(error.value) == text


def test_limits_and_other_values_pass():
  """Closed sides include their limit; what is not a number is not compared."""
  Example(share=1.0, count=1, limit=-5.0)
  Example(share=object(), limit=None, count=True)


def test_an_object_in_the_place_of_a_tuple_is_an_error():
  """Before the own checks of the class go through it."""

  @dataclasses.dataclass(frozen=True)
  @checked
  class Several:
    parts: tuple[Example, ...] = ()

    def __post_init__(self):
      list(self.parts)

  Several(parts=(Example(),))
  with pytest.raises(ValueError, match=r'Several.parts: expected a tuple, got'):
    Several(parts=Example())


def test_subclasses_check_all_fields():
  """The fields of the parent and their own."""

  @dataclasses.dataclass(frozen=True)
  @checked
  class Child(Example):
    width: int = ranged(2, 2)

  with pytest.raises(ValueError, match='Child.count = 0'):
    Child(count=0)
  with pytest.raises(ValueError, match='Child.width = 1'):
    Child(width=1)
