"""Numbers that code of a task returns."""

import math

import pytest

from rl_jax.verification import numbers


@pytest.mark.parametrize('value', [10**400, -(10**400), 1e13, math.nan])
def test_numbers_beyond_the_limit_are_named(value):
  with pytest.raises(ValueError, match="component 'outcome' is .*, not in"):
    numbers.check_numbers({'outcome': value}, 'reward')


def test_numbers_become_floats():
  assert numbers.check_numbers({'a': True, 'b': 3}, '') == {'a': 1.0, 'b': 3.0}
