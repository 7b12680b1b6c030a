"""Rounds of a pipeline: models that learn in turn, each from the others' last.

A judge, a verifier or a creator of prompts that learns between the rounds of a
policy is a stage of the round, as the policy is.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import string
import types

from experiments.pipelines.stages import Stage

NUMBER = 'number'
NONE: Mapping[str, str] = types.MappingProxyType({})


def unrolled(
  start: Sequence[Stage],
  body: Sequence[Stage],
  rounds: int,
  first: Mapping[str, str] = NONE,
) -> tuple[Stage, ...]:
  """The stages of `start`, then those of `body` once for every round.

  Stage NAME of the body becomes NAME_1, NAME_2 and so on. In flags of the body
  {NAME} is the last stage of that name before it: of the same round, if it
  is further up in the body, else of the round before, and in the first
  round the stage of `start` with that name. {number} is that of the round, from
  1.

  first: {NAME: what it is called in `start`}, where that differs, so that
  several stages of the body may begin with one of the start.
  Raises: ValueError for a body that has one name twice, or the name `number`.
  """
  names = [stage.name for stage in body]
  if len({*names, NUMBER}) <= len(names):
    raise ValueError(
      f'the stages of a round are called {names}: expected different names, '
      f'none of which is {NUMBER!r}'
    )
  found = list(start)
  fields = {name: f'{{{own}}}' for name, own in first.items()}
  for number in range(1, rounds + 1):
    fields[NUMBER] = str(number)
    for stage in body:
      flags = tuple(_filled(flag, fields) for flag in stage.flags)
      name = f'{stage.name}_{number}'
      found.append(dataclasses.replace(stage, name=name, flags=flags))
      fields[stage.name] = f'{{{name}}}'
  return tuple(found)


def _filled(flag: str, fields: dict[str, str]) -> str:
  """The flag with these of its fields; double braces and others stay."""
  parts = []
  for text, field, _, _ in string.Formatter().parse(flag):
    parts.append(text.replace('{', '{{').replace('}', '}}'))
    if field is not None:
      parts.append(fields.get(field, f'{{{field}}}'))
  return ''.join(parts)
