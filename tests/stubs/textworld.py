"""Stands in for textworld: games of one command."""

import os
import types


class GameOptions(types.SimpleNamespace):
  """The parts of a game."""

  def __init__(self):
    super().__init__(grammar=types.SimpleNamespace(theme='house'))


written = []  # what games were made of
themes = []


def EnvInfos(**names):  # noqa: N802
  """The names that are asked for."""
  return names


def make(options):
  """Writes a game."""
  written.append((options.nb_rooms, options.quest_length, options.seeds))
  themes.append(options.grammar.theme)
  for suffix in ('.z8', '.json'):
    with open(options.path.replace('.z8', suffix), 'w') as file:
      file.write(suffix)


def start(path, infos):
  """The game of a file."""
  return _Game(infos) if os.path.exists(path) else None


class _Game:
  """A game of one command; `now` as EnvInfos asks for it."""

  def __init__(self, infos):
    self.infos = infos

  def seed(self, seed):
    """Nothing is drawn in the game."""

  def reset(self):
    """In a room with a lamp."""
    return types.SimpleNamespace(
      objective='Take the lamp.',
      description='-= Room =-\nA lamp is here.\n\n',
      feedback='a banner',
      admissible_commands=['look', 'take lamp'],
      facts=['lamp in room', 'at room'],
      policy_commands=['look', 'take lamp'],
      score=0,
      max_score=2,
      won=False,
    )

  def step(self, command):
    """One of two points for the lamp, which ends the game."""
    now = self.reset()
    if command == 'look':  # which the solution begins with
      now.policy_commands = ['take lamp']
    if command == 'take lamp':
      now.won, now.score, now.facts = True, 1, ['lamp in hand']
      now.policy_commands = []
    now.feedback = f'You {command}.\n>   -= Room =-0/7\n'
    return now, now.score, now.won

  def close(self):
    """Nothing."""
