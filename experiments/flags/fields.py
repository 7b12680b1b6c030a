"""Texts PATH=VALUE from the command line."""

from collections.abc import Sequence


def split(text: str, flag: str) -> tuple[str, str]:
  """(PATH, VALUE) of PATH=VALUE. Raises ValueError naming the flag."""
  path, equals, value = text.partition('=')
  if not equals:
    raise ValueError(f'{flag}={text}: expected {flag}=PATH=VALUE')
  return path, value


def once(sets: Sequence[str]) -> Sequence[str]:
  """The texts of --set, of which the later one would replace the former.

  Raises: ValueError for a field with two values.
  """
  paths = [split(text, '--set')[0] for text in set(sets)]
  for path in paths:
    if paths.count(path) > 1:
      raise ValueError(f'--set={path}=... has two values: give one')
  return sets
