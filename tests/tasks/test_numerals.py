"""Numbers in text: values, forms, and when two are equal."""

from fractions import Fraction

import pytest

from rl_jax.tasks import numerals


@pytest.mark.parametrize(
  ('text', 'value', 'form'),
  [
    ('1,000.5', Fraction(2001, 2), 'decimal'),
    ('- .5', Fraction(-1, 2), 'decimal'),
    (r'0.1\overline{6}', Fraction(1, 6), 'repeating'),
    (r'2.5\times 10^{-3}', Fraction(1, 400), 'scientific'),
    ('1e-40', Fraction(1, 10**40), 'scientific'),
    (r'-25 \cdot 10^{3}', Fraction(-25000), 'unscaled'),
    ('10^{-6}', Fraction(1, 10**6), 'unscaled'),
    (r'-\frac{3}{4}', Fraction(-3, 4), 'quotient'),
    ('3 1/2', Fraction(7, 2), 'mixed'),
    (r'-3\frac12', Fraction(-7, 2), 'mixed'),
  ],
)
def test_values_and_forms(text, value, form):
  assert numerals.parse(text) == (value, form)


@pytest.mark.parametrize(
  'text',
  ['', 'x', '1/0', '3 3/2', '1,00', '2^3', '1e999', '9' * 121, '٣', '1 2', '-'],
)
def test_what_is_no_number(text):
  assert numerals.parse(text) is None


@pytest.mark.parametrize(
  ('found', 'right', 'equal'),
  [
    ('0', '1/13983816', False),
    ('6/13983816', '1/13983816', False),
    ('-1/13983816', '1/13983816', False),
    ('2/27967632', '1/13983816', True),
    ('7.15112e-8', '1/13983816', True),  # six significant digits
    ('7.151e-8', '1/13983816', False),
    ('0', '0.0000005', False),
    ('5e-7', '0.0000005', True),
    ('0.00000051', '0.0000005', False),
    ('9.11e-31', '6.67e-11', False),
    ('0', '1e-300', False),
    ('1e-300', '1e-301', False),
    ('1e-300', '0', False),  # an integer is met exactly
    ('-0.0', '0', True),
    ('0.333333', '1/3', True),
    ('0.33333', '1/3', False),
    ('333333333/1000000000', '1/3', False),
    ('1/3', '0.333333', True),  # the right one is rounded
    ('38.571429', '270/7', True),
    ('38.5714', '270/7', False),
    ('3.0000001', '3', False),
  ],
)
def test_small_numbers_are_met_in_their_own_digits(found, right, equal):
  pair = numerals.parse(found), numerals.parse(right)
  assert numerals.equal(*pair, tolerance=1e-6) is equal
  negative = [numerals.parse(f'-{x.removeprefix("-")}') for x in (found, right)]
  if not found.startswith('-'):
    assert numerals.equal(*negative, tolerance=1e-6) is equal


def test_the_tolerance_is_absolute_above_1_and_shrinks_below():
  """By hand: 0.01 of 12.5 is 12.51; of 0.025 it is 0.001."""
  right, small = numerals.parse('12.5'), numerals.parse('0.025')
  assert numerals.equal(numerals.parse('12.51'), right, 0.01)
  assert not numerals.equal(numerals.parse('12.52'), right, 0.01)
  assert numerals.equal(numerals.parse('0.026'), small, 0.01)
  assert not numerals.equal(numerals.parse('0.0261'), small, 0.01)
  assert not numerals.equal(numerals.parse('0.025000001'), small, 0.0)
