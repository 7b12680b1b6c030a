"""Household games of ALFWorld, and games in its form written by hand."""

from collections.abc import Mapping
import dataclasses
import functools
import json
import pathlib
from typing import Any, NamedTuple, Protocol

from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply

PDDL, WRITTEN = 'game.tw-pddl', 'game.json'
FOLDERS = {
  'train': 'train',
  'validation': 'valid_seen',
  'test': 'valid_unseen',
}
_GAME = 'game'  # in Example.meta
# Of a path: tasks that ALFWorld itself leaves out.
_LEFT_OUT = ('movable', 'Sliced')


class Now(NamedTuple):
  """The text of a game, the possible commands, and whether it is won."""

  text: str
  commands: tuple[str, ...]
  won: bool


class Game(Protocol):
  """A game that is played."""

  def reset(self) -> Now:
    """Begins."""

  def step(self, command: str) -> Now:
    """Does something."""

  def close(self) -> None:
    """Ends."""


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class AlfWorld(EnvironmentTask):
  """The games below a folder, one for each prompt of a split.

    Reworded(task=AlfWorld(folder='data/alfworld/json_2.1.1'), turns=2)

  FOLDER/train, FOLDER/valid_seen (validation) and FOLDER/valid_unseen (test)
  hold the games as `alfworld-download` writes them, game.tw-pddl beside
  traj_data.json; games that its authors found no solution of are left out. A
  game.json is a game written by hand, {'first': NAME, 'states': {NAME: {'text':
  ..., 'commands': {COMMAND: NAME}}}, 'won': [NAME]}, where another command says
  that nothing happens.
  Reply.info has the possible actions without 'help'; states are the texts.
  Components: `outcome`, 1 when the task is solved, which ends the episode;
  `impossible`, 1 for a text that is not one of them.
  Source: "ALFWorld: Aligning Text and Embodied Environments for Interactive
  Learning"; package alfworld 0.4.2. A game.tw-pddl needs the extra 'alfworld'.

  Raises: FileNotFoundError naming the folder of a split without games.
  """

  folder: str = 'data/alfworld/json_2.1.1'
  traits = TaskTraits(chat=True)

  def num_prompts(self, split: str) -> int:
    """The number of games."""
    base.check_split(split)
    return len(games(self.folder, split))

  def example(self, split: str, index: int) -> Example:
    """The game of that index, in the order of paths."""
    example = super().example(split, index)
    path = games(self.folder, split)[index]
    return dataclasses.replace(example, meta={**example.meta, _GAME: path})

  def make(self, example: Example) -> 'AlfWorldEpisode':
    """A game that has not started."""
    return AlfWorldEpisode(str(example.meta[_GAME]))


class AlfWorldEpisode(Environment):
  """One game."""

  def __init__(self, path: str):
    written = path.endswith(WRITTEN)
    self._game: Game = WrittenGame(path) if written else _PlannedGame(path)

  def reset(self, seed: int) -> Reply:
    """The room and the task; a game has no chance, so the seed is not used."""
    self._now = self._game.reset()
    return self._reply({})

  def step(self, action: str) -> Reply:
    """Returns what the game answers."""
    command = ' '.join(action.split())
    known = command in self._now.commands
    self._now = self._game.step(command)
    rewards = {
      base.OUTCOME: float(self._now.won),
      'impossible': float(not known),
    }
    return self._reply(rewards, self._now.won)

  def close(self) -> None:
    """Ends the game."""
    self._game.close()

  def _reply(self, rewards, done=False):
    text = self._now.text.strip() + '\n'
    actions = [name for name in self._now.commands if name != 'help']
    return Reply(
      text, rewards=rewards, done=done, state=text, info={'actions': actions}
    )


class WrittenGame:
  """A game of states that a file lists.

  Raises: ValueError naming the file and a command that leads nowhere.
  """

  def __init__(self, path: str):
    with open(path, encoding='utf-8') as file:
      found = json.load(file)
    self._states: Mapping[str, Any] = found['states']
    self._first, self._won = found['first'], frozenset(found['won'])
    named = {self._first, *self._won}
    for state in self._states.values():
      named |= {*state['commands'].values()}
    if lost := named - self._states.keys():
      raise ValueError(f'{path}: there are no states {sorted(lost)}')
    self._place = self._first

  def reset(self) -> Now:
    """The first state."""
    self._place = self._first
    return self._now()

  def step(self, command: str) -> Now:
    """The next state, or the same one."""
    before = self._now()
    to = self._states[self._place]['commands'].get(command)
    if to is None:
      return before._replace(text='Nothing happens.')
    self._place = to
    return self._now()

  def close(self) -> None:
    """Nothing is open."""

  def _now(self):
    state = self._states[self._place]
    commands = tuple(sorted(state['commands']))
    return Now(state['text'], commands, self._place in self._won)


class _PlannedGame:
  """A game that the engine of TextWorld plays."""

  def __init__(self, path: str):
    start, infos, names = _package()
    self._game = start(path, infos(won=True, admissible_commands=True), [names])

  def reset(self) -> Now:
    """The first room."""
    return self._now(self._game.reset())

  def step(self, command: str) -> Now:
    """Returns what the engine says."""
    found, _, _ = self._game.step(command)
    return self._now(found)

  def close(self) -> None:
    """Ends the engine."""
    self._game.close()

  def _now(self, found):
    commands = tuple(found['admissible_commands'])
    return Now(found['feedback'], commands, bool(found['won']))


@functools.lru_cache(maxsize=16)
def games(folder: str, split: str) -> tuple[str, ...]:
  """The files of the games of a split, sorted.

  Raises: FileNotFoundError naming the folder, and how it is filled.
  """
  root = pathlib.Path(folder).expanduser() / FOLDERS[split]
  found = [*root.rglob(WRITTEN)]
  found += [path for path in root.rglob(PDDL) if _counts(path)]
  if not found:
    raise FileNotFoundError(
      f'AlfWorld.folder: {root} has no {PDDL} and no {WRITTEN}: '
      'alfworld-download of the package alfworld writes the games'
    )
  return tuple(sorted(map(str, found)))


def _counts(path: pathlib.Path) -> bool:
  """Returns whether a game is one of those that ALFWorld plays."""
  if any(word in str(path.parent) for word in _LEFT_OUT):
    return False
  with open(path, encoding='utf-8') as file:
    return bool(json.load(file).get('solvable'))


def _package() -> Any:
  """(start of an engine, its infos, a wrapper that names things)."""
  try:
    from alfworld.agents.environment import alfred_tw_env
    import textworld
  except ImportError as error:
    raise ImportError(
      f"{PDDL} needs the extra 'alfworld': pip install 'rl_jax[alfworld]'"
    ) from error
  return textworld.start, textworld.EnvInfos, alfred_tw_env.AlfredDemangler()
