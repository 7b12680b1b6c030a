"""Text adventures that TextWorld writes: rooms, objects and a quest."""

import dataclasses
import os
import pathlib
import re
import string
import tempfile
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

_INFOS = (
  *('objective', 'description', 'admissible_commands', 'facts'),
  *('won', 'lost', 'score', 'max_score', 'policy_commands'),
)
# Texts that the interpreter itself would obey: a backslash begins its own
# commands, some words write files, end the game or begin it again, and a stop
# begins the next command.
_META = re.compile(
  r"[^\w' -]|\b(?:then|save|restore|restart|quit|q|undo|script|transcript"
  r'|unscript|verify|version|again|g|oops)\b',
  re.IGNORECASE,
)
# What games of the basic theme say and read.
_WORDS = tuple(
  'First,|. Next,|.\n-= Room|-= Room| =-\nYou are in the room|.\nThere is a'
  "|. There is a|n exit to the|. The|You|It's|. It is| here|.\n"
  '| the| a| an| in| on| and| from| into| with| through'
  '|go|open|close|take|drop|insert|put|lock|unlock|eat|look|inventory|examine'
  '| go| open| close| take| drop| insert| put| lock| unlock| eat| pick up'
  '| room| box| stand| door| thing| snack| key|-key|-box|-door'
  '| north| south| east| west| closed| locked| holds| contains| nothing'
  '|, revealing| floor| ground| are carrying| object| container| supporter'
  "| can't see any such thing.".split('|')
)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class TextWorld(EnvironmentTask):
  """Games of so many rooms and objects, won by `quest_length` commands.

    TextWorld(rooms=2, objects=3, quest_length=4)

  Writing a game takes seconds, when its example is first drawn; it is kept in
  `folder`. The first observation is the objective and the room, later ones what
  the game answers; with `commands` each ends with the commands that can be
  given. Components: `outcome` 1 if the quest is solved, `reward` the share of
  the score that a command has earned, `invalid` 1 for a text that is no such
  command (what the interpreter would obey, as 'save', is not passed on),
  `progress` (L - L') / L_0 for the length L of the game's own solution, which
  changes to L': 1 in all for a quest that is solved, and 0 once it cannot be.
  States are the facts of the world.
  Of the themes 'house' writes prose and 'basic' short sentences of few words.
  Source: "TextWorld: A Learning Environment for Text-based Games".

  Needs the extra 'textworld'.
  """

  rooms: int = ranged(2, 1)
  objects: int = ranged(3, 1)
  quest_length: int = ranged(4, 1)
  theme: str = chosen('house', ('house', 'basic'))
  commands: bool = False
  chat: bool = False
  num_train: int = ranged(16, 1)
  num_held_out: int = ranged(4, 1)  # of validation and test each
  folder: str = '~/.cache/rl_jax/textworld'

  @property
  def traits(self) -> TaskTraits:
    """`chat` is a field."""
    return TaskTraits(chat=self.chat)

  @property
  def alphabet(self) -> tuple[str, ...]:
    """Words of the basic theme, and ASCII characters for all other texts."""
    return (*_WORDS, *string.printable)

  def prepare(self) -> None:
    """Imports the package once."""
    _package()

  def example(self, split: str, index: int) -> Example:
    """The game of that index, which is written if it is new."""
    example = super().example(split, index)
    path = self.path(seed_of(example))
    if not path.exists():
      _write(self, seed_of(example), path)
    return example

  def path(self, seed: int) -> pathlib.Path:
    """The file of a game."""
    name = f'r{self.rooms}-o{self.objects}-q{self.quest_length}-{seed}.z8'
    if self.theme != 'house':
      name = f'{self.theme}-{name}'
    return pathlib.Path(self.folder).expanduser() / name

  def make(self, example: Example) -> 'TextWorldEpisode':
    """A game that has not started."""
    return TextWorldEpisode(self)


class TextWorldEpisode(Environment):
  """One game."""

  def __init__(self, task: TextWorld):
    self._task = task
    self._game: Any = None

  def reset(self, seed: int) -> Reply:
    """The objective and the first room."""
    package = _package()
    infos = package.EnvInfos(**dict.fromkeys(_INFOS, True))
    self._game = package.start(str(self._task.path(seed)), infos)
    self._game.seed(seed)
    self._now = self._game.reset()
    self._left = self._length = len(self.solution)
    observed = f'{self._now.objective}\n{self._now.description}'
    return Reply(self._observed(observed), state=self._state())

  def step(self, action: str) -> Reply:
    """Returns what the game answers."""
    command, before = ' '.join(action.split()), self._now
    valid = command in before.admissible_commands
    if not valid and _META.search(command):
      return self._reply('That is no command.', before, valid, self._left)
    self._now, _, done = self._game.step(command)
    left = self._left
    if self._now.won or self.solution:
      self._left = 0 if self._now.won else len(self.solution)
    observed = self._now.feedback
    return self._reply(observed, before, valid, left, done, command)

  @property
  def commands(self) -> tuple[str, ...]:
    """Those that can be given, in order."""
    return tuple(self._now.admissible_commands)

  @property
  def solution(self) -> tuple[str, ...]:
    """The game's own commands that win from here; () if there are none."""
    return tuple(self._now.policy_commands or ())

  def close(self) -> None:
    """Ends the interpreter of the game."""
    if self._game is not None:
      self._game.close()

  def _reply(self, text, before, valid, left, done=False, command=''):
    """A reply; before: what was known; left: how long the solution was."""
    won, earned = bool(self._now.won), self._now.score or 0
    return Reply(
      self._observed(text),
      rewards={
        base.OUTCOME: float(won),
        'reward': (earned - (before.score or 0))
        / max(self._now.max_score or 1, 1),
        'invalid': float(not valid),
        'progress': (left - self._left) / max(self._length, 1),
      },
      done=bool(done),
      state=self._state(),
      action=command if valid else '',
    )

  def _observed(self, text):
    lines = [line.strip() for line in text.split('\n')]
    # '>' opens the game's own prompt, with a count of moves after it.
    lines = [line for line in lines if line and not line.startswith('>')]
    if self._task.commands:
      lines.append(f'You can: {"; ".join(self.commands)}')
    return '\n'.join(lines) + '\n'

  def _state(self):
    return tuple(sorted(map(str, self._now.facts)))


def _write(task: TextWorld, seed: int, path: pathlib.Path) -> None:
  """Complete or not at all: other processes may write the same game."""
  package = _package()
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(dir=path.parent) as folder:
    options = package.GameOptions()
    options.nb_rooms, options.nb_objects = task.rooms, task.objects
    options.quest_length, options.seeds = task.quest_length, seed
    options.grammar.theme = task.theme
    options.path = os.path.join(folder, path.name)
    package.make(options)
    for suffix in ('.json', '.z8'):  # the game itself last
      name = path.with_suffix(suffix)
      os.replace(os.path.join(folder, name.name), name)


def _package() -> Any:
  try:
    import textworld
  except ImportError as error:
    raise ImportError(
      "TextWorld needs the extra 'textworld': pip install 'rl_jax[textworld]'"
    ) from error
  return textworld
