"""Every field that has a range or choices refuses all else when it is made.

golden/refused_fields.txt holds limits that were written down by hand: a class,
a field, a value and what the error says of it.
"""

import ast
import dataclasses
import importlib
import inspect
import math
import pathlib
import pkgutil
import re

import pytest

import rl_jax
from rl_jax.checks import CHOICES, RANGE

REFUSED = pathlib.Path(__file__).parent / 'golden' / 'refused_fields.txt'
ROW = re.compile(r'(\w+)\.(\w+)(\[0\])? = (.+?) is (outside|none of) ')
# Those for which infinity means `off`.
TAKE_INFINITY = {'GuardConfig.max_logp_gap'}


def all_classes():
  """Dataclasses of rl_jax with such fields, by the names in their messages."""
  found = {}
  for info in pkgutil.walk_packages(rl_jax.__path__, 'rl_jax.'):
    if info.name.startswith('rl_jax.verification.sandbox'):
      continue  # runs only inside it
    for value in vars(importlib.import_module(info.name)).values():
      if isinstance(value, type) and dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        ranged = any(f.metadata.keys() & {RANGE, CHOICES} for f in fields)
        if ranged and not inspect.isabstract(value):
          found.setdefault(value.__name__, []).append(value)
  return {name: list(dict.fromkeys(kinds)) for name, kinds in found.items()}


CLASSES = all_classes()


def refusal(cls, name, value):
  """The error of one wrong field; fields without a default hold None."""
  values = {
    f.name: None
    for f in dataclasses.fields(cls)
    if f.init and f.default is f.default_factory is dataclasses.MISSING
  }
  with pytest.raises(ValueError) as error:
    cls(**{**values, name: value})
  return str(error.value)


def outside(field):
  """Values that a field refuses: beyond or at its limits, or no choice."""
  if CHOICES in field.metadata:
    return ['no such choice']
  low, high, open_low, open_high = field.metadata[RANGE]
  values = [math.nan, -math.inf]
  if low is not None:
    values.append(low if open_low else low - 1)
  if high != math.inf:
    values.append(math.inf)
  if high not in (None, math.inf):
    values.append(high if open_high else high + 1)
  return values


@pytest.mark.parametrize('row', REFUSED.read_text().splitlines())
def test_limits_are_those_written_down(row):
  """Class, field, value and range or choices, to the letter."""
  name, field, place, text, _ = ROW.match(row).groups()
  value = float('nan') if text == 'nan' else ast.literal_eval(text)
  (cls,) = (c for c in CLASSES[name] if field in c.__dataclass_fields__)
  assert refusal(cls, field, (value,) if place else value) == row


@pytest.mark.parametrize('name', sorted(CLASSES))
def test_fields_are_checked(name):
  """Each field with each kind of wrong value; the message names both."""
  for cls in CLASSES[name]:
    for field in dataclasses.fields(cls):
      if field.metadata.keys().isdisjoint({RANGE, CHOICES}) or not field.init:
        continue
      for value in outside(field):
        start = f'{name}.{field.name} = {value!r} is '
        assert refusal(cls, field.name, value).startswith(start)


def test_no_field_accepts_infinity_but_those_that_name_it():
  """All classes of rl_jax: in one, infinity means `off`."""
  limits = {
    f'{name}.{field.name}': field.metadata[RANGE]
    for name, kinds in CLASSES.items()
    for cls in kinds
    for field in dataclasses.fields(cls)
    if RANGE in field.metadata
  }
  taking = {k for k, (_, high, _, _) in limits.items() if high == math.inf}
  assert taking == TAKE_INFINITY and len(limits) > 400
