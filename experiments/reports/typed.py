"""Keeps what the user typed to describe a run beside its configuration.

Reports call runs by it: an own method has the name of its file, not that of the
nearest method of configs/methods. Runs are joined by their configuration only.
"""

from collections.abc import Sequence
import json
import os
from typing import Any

from rl_jax.runs import callbacks
from rl_jax.runtime import processes

FILE = 'command.json'


class Typed(callbacks.Callback):
  """A callback that writes the words of a run when it starts."""

  def __init__(
    self,
    config: str,
    method: str | None,
    sets: Sequence[str] = (),
    adds: Sequence[str] = (),
  ):
    self._words = {
      'config': config,
      'method': method,
      'set': list(sets),
      'add': list(adds),
    }

  def on_start(self, trainer: Any) -> None:
    """Replaces what an earlier session wrote."""
    if processes.is_main():
      self.write(trainer.workdir)

  def write(self, workdir: str) -> None:
    """Writes the file at once, or not at all."""
    path = os.path.join(workdir, FILE)
    with open(path + '.tmp', 'w', encoding='utf-8') as file:
      json.dump(self._words, file, indent=2)
    os.replace(path + '.tmp', path)


def method_of(workdir: str) -> str | None:
  """'clip_cov EntropyBonus.coef=0.1': the method, and changes, as typed.

  None: nothing is known, or the method is that of a JSON file.
  """
  try:
    with open(os.path.join(workdir, FILE), encoding='utf-8') as file:
      words = json.load(file)
    method, sets, adds = words['method'], words['set'], words['add']
    parts = [_name(method), *map(_set, sets), *map(_add, adds)]
    return ' '.join(part for part in parts if part)
  except (OSError, ValueError, KeyError, TypeError, AttributeError):
    return None


def _name(method: str) -> str:
  """'mine@quarter' of '../mine.py@quarter'."""
  path, at, variant = method.partition('@')
  stem = os.path.basename(path).removesuffix('.py')
  return f'{stem}{at}{variant}'


def _set(text: str) -> str:
  """'PPOClip.clip_high=0.28' of a change of the method, else ''."""
  path, _, value = text.partition('=')
  section, *names = path.split('.')
  if section != 'method':
    return ''
  pieces = [i for i, name in enumerate(names) if name[:1].isupper()]
  short = '.'.join(names[pieces[0] :] if pieces else names[-1:])
  return f'-{short}' if value == 'null' else f'{short}={value}'


def _add(text: str) -> str:
  """'+EntropyBonus(coef=0.1)' of 'method.losses=EntropyBonus(coef=0.1)'."""
  path, _, value = text.partition('=')
  return f'+{value}' if path.startswith('method.') else ''
