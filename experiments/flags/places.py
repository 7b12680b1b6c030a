"""The flag --workdir of programs that read several runs."""

from collections.abc import Sequence
import os

from absl import flags


def define_workdirs(
  text: str, values: flags.FlagValues = flags.FLAGS
) -> flags.FlagHolder:
  """--workdir, which may be repeated; --workdirs=A,B is its former form."""
  found = flags.DEFINE_multi_string(
    'workdir', [], f'{text}; may be repeated.', flag_values=values
  )
  flags.DEFINE_alias('workdirs', 'workdir', flag_values=values)
  return found


def workdirs(values: Sequence[str]) -> list[str]:
  """The directories; a text that is none is split at its commas."""
  found = []
  for text in values:
    found += [text] if os.path.exists(text) else text.split(',')
  return [path for path in found if path]
