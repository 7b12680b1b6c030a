"""States of KeyDoor, and recorded episodes that continue from them."""

import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example, RecordedResponse
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds.key_door import KeyDoor, Layout
from rl_jax.worlds.key_door_words import (
  ACTIONS,
  WORDS,
  State,
  observed,
)

_LETTERS = WORDS['letter']
_MOVES = 12  # the most before a recorded episode


@dataclasses.dataclass(frozen=True)
@checked
class RecordedEpisodes(DrawnTask):
  """Prompt 'k01d11g20:02->', a state of KeyDoor; response 'u', a move.

  A recorded player makes the first move of a shortest way to the goal, or with
  probability `noise` any of the six. A state is one that it has come to after
  fewer than 12 moves. From there `num_recorded` of its episodes continue:
  actions, and between them observations as KeyDoor writes them. An episode has
  reward 1 at the goal; after each other move it is cut with probability `cut`,
  and after `turns` moves, with reward 0. Component of a single response:
  `outcome`, 1 for a move that brings the goal nearer. States of a split are in
  the grids of its first num_grids examples; grids of the splits differ.
  Source: this code, a stand-in for logs of device control.
  """

  size: int = ranged(3, 3, 9)
  noise: float = ranged(0.5, 0.0, 1.0)
  turns: int = ranged(8, 1)
  cut: float = ranged(0.15, 0.0, 1.0)
  num_grids: int = ranged(8, 1)
  num_recorded: int = ranged(4, 1)
  num_train: int = ranged(3000, 1)
  num_validation: int = ranged(200, 1)
  num_test: int = ranged(200, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def alphabet(self) -> str:
    """The alphabet of KeyDoor."""
    return self.grids.alphabet

  @property
  def grids(self) -> KeyDoor:
    """Returns what is played."""
    return KeyDoor(
      size=self.size,
      seed=self.seed,
      num_train=self.num_train,
      num_held_out=max(self.num_validation, self.num_test),
    )

  def example(self, split: str, index: int) -> Example:
    """A state that the player has come to; never the goal."""
    base.check_index(self, split, index)
    stream = draws.Draws('logged', self.seed, split, index)
    grid = self.grids.example(split, index % self.num_grids)
    seed = seed_of(grid)
    layout = self.grids.layout(seed)
    state = (*layout.start, 0)
    for _ in range(stream.below(_MOVES)):
      after = layout.next(state, self._move(layout, state, stream))
      if after[:2] == layout.goal:
        break
      state = after
    return Example(
      prompt=layout.described() + observed(state),
      answer=''.join(_LETTERS[a] for a in nearer(layout, state)),
      id=index,
      meta={'seed': seed, 'state': list(state), 'split': split},
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The episodes from the state of the example."""
    layout = self.grids.layout(example.meta['seed'])
    where = self.seed, example.meta['split'], example.id
    return tuple(
      self._episode(layout, tuple(example.meta['state']), stream)
      for stream in (
        draws.Draws('episode', *where, number)
        for number in range(self.num_recorded)
      )
    )

  def target(self, example: Example) -> str:
    """A move of a shortest way."""
    return example.answer[0]

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Returns whether it is one move that brings the goal nearer."""
    right = len(response) == 1 and response in example.answer
    return {base.OUTCOME: float(right)}

  def _episode(self, layout, state, stream):
    """An episode of the player, from a state."""
    turns, done = [], False
    while not done:
      move = self._move(layout, state, stream)
      state = layout.next(state, move)
      turns.append((_LETTERS[move], observed(state)))
      done = state[:2] == layout.goal
      if len(turns) == self.turns or stream.uniform() < self.cut:
        break
    turns[-1] = turns[-1][0], ''  # nothing is read after the last
    return RecordedResponse(
      turns=tuple(turns),
      turn_ends=True,
      reward=float(done),
      truncated=not done,
    )

  def _move(self, layout, state, stream):
    if stream.uniform() < self.noise:
      return stream.below(len(ACTIONS))
    return nearer(layout, state)[0]


@functools.lru_cache(maxsize=1 << 16)
def nearer(layout: Layout, state: State) -> tuple[int, ...]:
  """The actions that begin a shortest way from the state to the goal."""
  left = _distance(layout, state)
  after = [layout.next(state, action) for action in range(len(ACTIONS))]
  return tuple(a for a, s in enumerate(after) if _distance(layout, s) < left)


@functools.lru_cache(maxsize=1 << 16)
def _distance(layout, state):
  place = dataclasses.replace(layout, start=state[:2])
  return len(place.solution(state[2]))
