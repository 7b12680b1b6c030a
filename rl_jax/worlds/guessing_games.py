"""A word to be guessed by its letters, and an object by questions about it."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

WORDS = (
  'ante earn east else iron isle lane lean lens line lion list lone lose lost '
  'nail near neat nest nose note oral rail rain rate real rent rest rise role '
  'roll rose sail sale salt seal seat sent site soil sole sore sort star tail '
  'tale tear tile tire toll tone tore torn trio'
).split()
_LETTERS = ''.join(sorted({*''.join(WORDS)}))
# Objects A to P: is it alive, an animal, does it fly, live in water, can one
# eat it, is it larger than a person, made by people, does it move by itself?
OBJECTS = {
  'A': '11100001',  # sparrow
  'B': '11010101',  # whale
  'C': '11011001',  # trout
  'D': '11000101',  # elephant
  'E': '11000001',  # cat
  'F': '11001001',  # hen
  'G': '10000100',  # oak
  'H': '10001000',  # carrot
  'I': '10011000',  # alga
  'J': '10000000',  # daisy
  'K': '00100111',  # aeroplane
  'L': '00010111',  # ship
  'M': '00000111',  # train
  'N': '00001010',  # bread
  'O': '00000010',  # spoon
  'P': '00100010',  # kite
}
_QUESTIONS = 'abcdefgh'


def marks(word: str, guess: str) -> str:
  """'g' for a letter at its place, 'y' at another one, 'b' for none.

  As in Wordle a letter of the word answers one letter of the guess, those at
  their place first.
  """
  left = [a for a, b in zip(word, guess, strict=True) if a != b]
  found = []
  for a, b in zip(word, guess, strict=True):
    if a == b:
      found.append('g')
    elif b in left:
      left.remove(b)
      found.append('y')
    else:
      found.append('b')
  return ''.join(found)


class _Game(Environment):
  """An episode with a hidden thing: `known` is what may still be hidden."""

  def __init__(self, hidden: str, things: list[str], turns: int):
    self._hidden, self._things, self._turns = hidden, things, turns

  def reset(self, seed: int) -> Reply:
    """Nothing is known."""
    del seed  # that of the example
    self._left, self._known = self._turns, list(self._things)
    return Reply('>')

  @property
  def solution(self) -> tuple[str, ...]:
    """The first thing that may be hidden."""
    return tuple(self._known[:1])

  @property
  def commands(self) -> tuple[str, ...]:
    """Whatever may be said."""
    return tuple(self._things)

  def _replied(self, solved: bool, said: str, valid: bool) -> Reply:
    """Returns the reply to a turn, which costs 1 unless it solves the game."""
    self._left -= 1
    over = solved or not self._left
    return Reply(
      '' if over else said + '>',
      rewards={
        base.OUTCOME: float(solved),
        'cost': float(solved) - 1.0,
        'invalid': float(not valid),
      },
      done=over,
    )


class _Wordle(_Game):
  """An episode of Wordle."""

  def step(self, action: str) -> Reply:
    """The marks of a word of the list, '-' for any other text."""
    if action not in WORDS:
      return self._replied(False, '-', False)
    said = marks(self._hidden, action)
    self._known = [x for x in self._known if marks(x, action) == said]
    return self._replied(action == self._hidden, said, True)


class _Questions(_Game):
  """An episode of twenty questions."""

  def step(self, action: str) -> Reply:
    """'y' or 'n' to a question or to a name, '-' for any other text."""
    if action in OBJECTS:
      self._known = [x for x in self._known if x != action] or self._things
      return self._replied(action == self._hidden, 'n', True)
    if len(action) != 1 or action not in _QUESTIONS:
      return self._replied(False, '-', False)
    place = _QUESTIONS.index(action)
    answer = OBJECTS[self._hidden][place]
    self._known = [x for x in self._known if OBJECTS[x][place] == answer]
    return self._replied(False, 'ny'[int(answer)], True)

  @property
  def solution(self) -> tuple[str, ...]:
    """The question that splits what may be hidden most evenly, or its name."""
    if len(self._known) == 1:
      return tuple(self._known)

    def yes(place: int):
      return sum(OBJECTS[x][place] == '1' for x in self._known)

    half = len(self._known) / 2
    best = min(range(len(_QUESTIONS)), key=lambda i: abs(yes(i) - half))
    return (_QUESTIONS[best],)

  @property
  def commands(self) -> tuple[str, ...]:
    """Questions and names."""
    return (*_QUESTIONS, *OBJECTS)


@dataclasses.dataclass(frozen=True)
@checked
class Wordle(EnvironmentTask):
  """A word of four letters, of 54, is to be guessed in `guesses` turns.

  An action is a word; the reply has a mark for each letter, as 'gybb>', and
  '->' to what is not on the list. Components: `cost` -1 for every guess but the
  one that solves it, `outcome` 1 then, `invalid` 1 for other texts. A player
  that says the first word still possible needs 2.6 guesses on average, 4 at
  most.
  Source: LMRL-Gym, "Benchmarks for Multi-Turn Reinforcement Learning with
  Language Models", whose words have five letters; the list is ours.
  """

  guesses: int = ranged(6, 1)
  reward_weights: dict[str, float] = base.weights_field(
    cost=1.0, outcome=0.0, invalid=0.0
  )
  traits = TaskTraits(global_random=False)
  alphabet = _LETTERS + 'gyb->'

  def word(self, example: Example) -> str:
    """The hidden word."""
    return draws.Draws('wordle', seed_of(example)).choice(WORDS)

  def make(self, example: Example) -> Environment:
    """An episode about the word of the example."""
    return _Wordle(self.word(example), list(WORDS), self.guesses)


@dataclasses.dataclass(frozen=True)
@checked
class TwentyQuestions(EnvironmentTask):
  """One of 16 objects is to be named, by questions of a scripted table.

  An action is a letter: a to h asks whether the object is alive, an animal,
  flies, lives in water, can be eaten, is larger than a person, is made by
  people, moves by itself, with the reply 'y>' or 'n>'; A to P names an object.
  Components as of Wordle: -1 a turn, 0 for the one that names it, at most
  `questions` turns. Questions that halve what is left need 5.1 turns on
  average.
  Source: LMRL-Gym, in place of its 158 objects and a language model as oracle.
  """

  questions: int = ranged(20, 1)
  reward_weights: dict[str, float] = base.weights_field(
    cost=1.0, outcome=0.0, invalid=0.0
  )
  traits = TaskTraits(global_random=False)
  alphabet = _QUESTIONS + ''.join(OBJECTS) + 'yn->'

  def hidden(self, example: Example) -> str:
    """The letter of the object."""
    stream = draws.Draws('twenty questions', seed_of(example))
    return stream.choice(list(OBJECTS))

  def make(self, example: Example) -> Environment:
    """An episode about the object of the example."""
    return _Questions(self.hidden(example), list(OBJECTS), self.questions)
