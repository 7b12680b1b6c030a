"""Ranges and choices of fields, checked when an object is made."""

import dataclasses

import pytest

from rl_jax.checks import checked, chosen, ranged


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
  """Closed sides include their limit; what is no number is not compared."""
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
  """Those of the parent and their own."""

  @dataclasses.dataclass(frozen=True)
  @checked
  class Child(Example):
    width: int = ranged(2, 2)

  with pytest.raises(ValueError, match='Child.count = 0'):
    Child(count=0)
  with pytest.raises(ValueError, match='Child.width = 1'):
    Child(width=1)
