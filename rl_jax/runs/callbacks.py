"""Own code in a run: objects whose methods are called when things happen.

    class Printer(Callback):
      def on_iteration(self, step, row):
        print(step, row['reward/mean'])

    Trainer(config, workdir, callbacks=[Printer()]).run()

or `--callback=my_file.py:Printer`. Rows are those of metrics.jsonl, as host
numbers, one iteration late. Every process of a run calls all of them. What a
callback raises ends the run; its last checkpoint is valid.
"""

from collections.abc import Sequence
from typing import Any

import jax

from rl_jax import overrides, user_modules


class Callback:
  """Does nothing; an object with some of these functions serves as well."""

  def on_start(self, trainer: Any) -> None:
    """Called before the first iteration of a session."""

  def on_iteration(self, step: int, row: dict[str, Any]) -> bool | None:
    """Called after every row; True saves and ends the run on all processes."""

  def on_save(self, step: int, row: dict[str, Any]) -> None:
    """A save has started; earlier checkpoints are on the disk."""

  def on_end(self, step: int, row: dict[str, Any]) -> None:
    """Called after the last checkpoint of a session, which was read back."""


_HOOKS = [name for name in vars(Callback) if name.startswith('on_')]


class Callbacks:
  """Calls the functions that objects have, in their order.

  Raises ValueError for an object that has none of them.
  """

  def __init__(self, objects: Sequence[Any] = ()):
    for one in objects:
      hooks = [x for x in dir(one) if x.startswith('on_')]
      unknown = [x for x in hooks if x not in _HOOKS]
      if unknown or not hooks:
        name = unknown[0] if unknown else 'on_...'
        text = overrides.unknown_name('function of a callback', name, _HOOKS)
        raise ValueError(f'{type(one).__name__}: {text}')
    self._objects = tuple(objects)

  def call(self, hook: str, *arguments: Any) -> bool:
    """Returns whether one of the objects returned True."""
    found = []
    # The run forbids transfers that no one asked for; own code may do them.
    with jax.transfer_guard('allow'):
      for one in self._objects:
        if (function := getattr(one, hook, None)) is not None:
          found.append(function(*arguments))
    return any(result is True for result in found)


def load(text: str) -> Any:
  """The object of PATH.py:CLASS or MODULE:CLASS, made without arguments.

  A name of something that is not a class is that object itself.

  Raises: ValueError or FileNotFoundError naming what is not there.
  """
  place, colon, name = text.rpartition(':')
  if not colon or not name.isidentifier():
    raise ValueError(f'{text!r}: expected PATH.py:CLASS or MODULE:CLASS')
  module = user_modules.add(place)
  found = getattr(module, name, None)
  if found is None:
    names = [x for x in dir(module) if not x.startswith('_')]
    raise ValueError(overrides.unknown_name(f'class in {place}', name, names))
  return found() if isinstance(found, type) else found
