"""Moves of a small game in free words: one answer in one information state."""

from collections.abc import Sequence
import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, Task
from rl_jax.tasks.environments.information_states import Situation, situations
from rl_jax.tasks.environments.open_spiel import OpenSpiel


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class SpokenMoves(Task):
  """Prompt '02pb>', player and information state; response 'i bet', a move.

  game: its decisions are the prompts, in all splits, one after the other.
  words: of each move, by its name in the game. frames: what surrounds a word. A
  text is understood as a move if its words are of that move only. The target is
  a text of a random legal move, so that SFT on targets teaches to
  speak and not to play. Component: `outcome` 1 if a legal move is understood.
  Source: moves in words for "Learning Strategic Language Agents in the Werewolf
  Game with Iterative Latent Space Policy Optimization"; reconstructed.
  """

  game: OpenSpiel = dataclasses.field(default_factory=OpenSpiel)
  words: dict[str, tuple[str, ...]] = dataclasses.field(
    default_factory=lambda: {'p': ('pass', 'check'), 'b': ('bet', 'raise')},
    hash=False,
  )
  frames: tuple[str, ...] = ('{}', 'i {}', '{} now')
  num_train: int = ranged(4096, 1)
  num_held_out: int = ranged(256, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  def __post_init__(self):
    bad = [frame for frame in self.frames if frame.count('{}') != 1]
    if bad or not self.frames:
      raise ValueError(
        f'SpokenMoves.frames = {self.frames}: expected texts with one {{}}'
      )
    said = [word for words in self.words.values() for word in words]
    if len(set(said)) < len(said):
      raise ValueError(
        f'SpokenMoves.words = {self.words}: two moves have the same word'
      )

  @property
  def alphabet(self) -> str | tuple[str, ...]:
    """The alphabet of the game and the other letters."""
    said = ''.join(text for name in self.words for text in self.texts(name))
    known = self.game.alphabet
    more = sorted(set(said) - set(known))
    return (
      (*known, *more) if isinstance(known, tuple) else known + ''.join(more)
    )

  def situations(self) -> Sequence[Situation]:
    """The decisions of the game. Needs the extra 'games'."""
    return _situations(self.game)

  def prompt(self, one: Situation) -> str:
    """Returns what the policy reads in an information state."""
    return f'{one.player}{one.key}>'

  def texts(self, name: str) -> list[str]:
    """Every text of a move."""
    return [
      f.replace('{}', word) for word in self.words[name] for f in self.frames
    ]

  def move(self, text: str) -> str | None:
    """The name of the move that is understood, None without one."""
    said = set(text.split())
    found = [name for name, words in self.words.items() if said & set(words)]
    return found[0] if len(found) == 1 else None

  def num_prompts(self, split: str) -> int:
    """Decisions come again."""
    base.check_split(split)
    return self.num_train if split == 'train' else self.num_held_out

  def example(self, split: str, index: int) -> Example:
    """The decision at place index modulo their number, and something to say."""
    base.check_index(self, split, index)
    found = self.situations()
    one = found[index % len(found)]
    stream = draws.Draws('spoken', self.seed, split, index)
    answer = stream.choice(self.texts(stream.choice(list(one.names))))
    return Example(
      prompt=self.prompt(one),
      answer=answer,
      id=index,
      meta={'legal': list(one.names)},
    )

  def target(self, example: Example) -> str:
    """A text of a random move."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Returns whether a legal move is understood."""
    return {base.OUTCOME: float(self.move(response) in example.meta['legal'])}


@functools.lru_cache(maxsize=8)
def _situations(game: OpenSpiel) -> tuple[Situation, ...]:
  return tuple(situations(game))
