"""KeyDoor: a grid in text, where a key opens the door to the goal."""

import collections
from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  SEED,
  DeviceReply,
  Environment,
  EnvironmentTask,
  Reply,
)
from rl_jax.worlds.key_door_words import (
  ACTIONS,
  HOLDS,
  MOVES,
  WORDS,
  State,
  observed,
)


@dataclasses.dataclass(frozen=True)
class Layout:
  """A grid: a wall fills the column `wall` but for the door, in row `door`."""

  size: int
  wall: int
  door: int
  key: tuple[int, int]
  goal: tuple[int, int]
  start: tuple[int, int]

  def described(self) -> str:
    """Returns what does not change, as 'k01d11g20:'."""
    places = ('k', self.key), ('d', (self.wall, self.door)), ('g', self.goal)
    return ''.join(f'{name}{x}{y}' for name, (x, y) in places) + ':'

  def next(self, state: State, action: int | None) -> State:
    """The state after an action; the same one if it cannot be done."""
    x, y, holds = state
    if action is None:
      return state
    if action < len(MOVES):
      x, y = x + MOVES[action][0], y + MOVES[action][1]
      inside = 0 <= x < self.size and 0 <= y < self.size
      free = x != self.wall or (y == self.door and holds == 2)
      return (x, y, holds) if inside and free else state
    if ACTIONS[action] == 'take':
      return (x, y, 1) if (x, y) == self.key and holds == 0 else state
    beside = (x, y) == (self.wall - 1, self.door)
    return (x, y, 2) if beside and holds == 1 else state

  def rewards(self, before: State, after: State) -> dict[str, float]:
    """Components of a step; of one that changes nothing, too."""
    done, impossible = after[:2] == self.goal, after == before
    return {
      base.OUTCOME: float(done),
      'progress': (after[2] - before[2]) / 2,
      'maze': 0.0 if done else -4.0 if impossible else -1.0,
    }

  def solution(self, holds: int = 0) -> list[int]:
    """A shortest sequence of actions from the start to the goal."""
    state = (*self.start, holds)
    came: dict[State, tuple[State, int] | None] = {state: None}
    queue = collections.deque([state])
    while queue:
      state = queue.popleft()
      if state[:2] == self.goal:
        break
      for action in range(len(ACTIONS)):
        after = self.next(state, action)
        if after not in came:
          came[after] = (state, action)
          queue.append(after)
    actions = []
    while (step := came[state]) is not None:
      state, action = step
      actions.append(action)
    return actions[::-1]


@dataclasses.dataclass(frozen=True)
@checked
class KeyDoor(EnvironmentTask):
  """Take the key, open the door, go to the goal; an action a turn.

  First observation 'k01d11g20:02->': places of key, door and goal (column,
  row), where the policy is, and '-', or 'k' with the key, or 'o' if the door is
  open; later ones '01k>'. An action that cannot be done changes nothing.
  Components: `outcome` 1 at the goal; `progress` 1/2 for the key and 1/2 for
  the door; `maze` -1 for each action that does not reach the goal and -4 for
  one that cannot be done, as in LMRL-Gym's Maze. Grids of the splits differ.
  Source: this code; rewards of "LMRL Gym: Benchmarks for Multi-Turn
  Reinforcement Learning with Language Models".
  """

  size: int = ranged(3, 3, 9)
  words: str = chosen('letter', tuple(WORDS))
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    digits = ''.join(map(str, range(self.size)))
    letters = set(''.join(WORDS[self.words])) | set('kdg:>' + HOLDS)
    return digits + ''.join(sorted(letters))

  @property
  def begins(self) -> int:
    """Returns what is in the hands at the start: its place in HOLDS."""
    return 0

  def make(self, example: Example) -> 'Walk':
    """An episode in the grid of the example."""
    return Walk(self)

  def layout(self, seed: int) -> Layout:
    """The grid of a seed."""
    return _layout(self.size, seed)

  def example(self, split: str, index: int) -> Example:
    """Seeds are drawn until the hash of their grid belongs to the split."""
    base.check_index(self, split, index)
    stream = draws.Draws('key door', self.seed, split, index)
    while True:
      seed = stream.below(1 << 31)
      if draws.split_of(self.size, self.layout(seed)) == split:
        break
    return Example(prompt='', answer='', id=index, meta={SEED: seed})

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    """The grids, i32[N, 8] as in `key_door_device.Walks`, and 8 i32[N]."""
    from rl_jax.tasks import device_verifiers

    grids = [self.layout(example.meta[SEED]) for example in examples]
    return device_verifiers.pad_rows(
      [(g.wall, g.door, *g.key, *g.goal, *g.start) for g in grids]
    )

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """See EnvironmentTask."""
    from rl_jax.worlds import key_door_device

    walks = key_door_device.begin(self.size, answer_BA)
    return walks, walks.place_B

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `Walk.step`."""
    from rl_jax.worlds import key_door_device as device

    number_B = device.action_numbers(self.words, action_BA, length_B, tokenizer)
    return device.step(self.size, state, number_B, tokenizer)

  def actions(self, example: Example) -> list[str]:
    """The words of a shortest solution."""
    words = WORDS[self.words]
    found = self.layout(example.meta[SEED]).solution(self.begins)
    return [words[action] for action in found]

  def random_return(
    self, example: Example, turns: int, component: str = base.OUTCOME
  ) -> float:
    """Mean sum of a component within so many uniform actions, exact.

    Of `outcome` the share of episodes that reach the goal.
    """
    layout = self.layout(example.meta[SEED])

    @functools.cache
    def value(state, left):
      if state[:2] == layout.goal or not left:
        return 0.0
      after = [layout.next(state, a) for a in range(len(ACTIONS))]
      paid = [layout.rewards(state, s)[component] for s in after]
      rest = [value(s, left - 1) for s in after]
      return (sum(paid) + sum(rest)) / len(ACTIONS)

    return value((*layout.start, self.begins), turns)


class Walk(Environment):
  """One episode."""

  def __init__(self, task: KeyDoor):
    self._task, self._words = task, WORDS[task.words]

  def reset(self, seed: int) -> Reply:
    """Starts with empty hands."""
    self._layout = self._task.layout(seed)
    self._state = (*self._layout.start, 0)
    return Reply(
      self._layout.described() + observed(self._state), state=self._state
    )

  def step(self, action: str) -> Reply:
    """Anything but a word of an action cannot be done."""
    number = self._words.index(action) if action in self._words else None
    before, self._state = (
      self._state,
      self._layout.next(self._state, number),
    )
    rewards = self._layout.rewards(before, self._state)
    return Reply(
      observed(self._state),
      rewards=rewards,
      done=rewards[base.OUTCOME] > 0,
      state=self._state,
      action='' if number is None else ACTIONS[number],
    )

  @property
  def holds(self) -> int:
    """The number of sub-goals reached: 1 with the key, 2 with the door open."""
    return self._state[2]

  @property
  def commands(self) -> tuple[str, ...]:
    """The words of all actions."""
    return self._words

  @property
  def solution(self) -> tuple[str, ...]:
    """The words of a shortest way from here to the goal."""
    x, y, holds = self._state
    rest = dataclasses.replace(self._layout, start=(x, y))
    return tuple(self._words[number] for number in rest.solution(holds))


@functools.lru_cache(maxsize=4096)
def _layout(size: int, seed: int) -> Layout:
  stream = draws.Draws('grid', size, seed)
  wall = 1 + stream.below(size - 2)

  def cell(low, high):
    return (
      low + stream.below(high - low),
      stream.below(size),
    )

  return Layout(
    size=size,
    wall=wall,
    door=stream.below(size),
    key=cell(0, wall),
    goal=cell(wall + 1, size),
    start=cell(0, wall),
  )
