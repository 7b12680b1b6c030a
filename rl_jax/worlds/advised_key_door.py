"""KeyDoor played by a small agent that a policy gives its sub-goals."""

import dataclasses
import functools
import math

import numpy as np

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply
from rl_jax.worlds.key_door import ACTIONS, KeyDoor, Layout
from rl_jax.worlds.key_door_words import HOLDS, State, observed

SUBGOALS = 'KDG'  # to have the key, an open door, to be at the goal
_RATE, _EXPLORE, _DISCOUNT, _LONGEST = 0.5, 0.3, 0.9, 50


@dataclasses.dataclass(frozen=True)
@checked
class AdvisedKeyDoor(EnvironmentTask):
  """A turn is a sub-goal, 'K', 'D' or 'G'; an agent then takes `stride` steps.

  The agent has a table of action values for each sub-goal, learned by
  Q-learning in the grid of the episode for `learned` steps in all; where a
  table says nothing its actions are random. It stops at its sub-goal, and says
  where it is as KeyDoor does; any other text moves nothing. listens=False: it
  has one table, of the goal only, of as many steps, and hears nothing.
  Components: `outcome` 1 at the goal, `progress` 1/2 for the key and 1/2 for
  the door, `steps` taken, `followed` sigmoid(10 (cos(sub-goal, what was
  reached) - 0.1)) over the three sub-goals, of weight 0 by default.
  Source: "RLAdapter: Bridging Large Language Models to Reinforcement Learning
  in Open Worlds", from notes: there the agent learns beside the adapter, which
  is rewarded by `followed` of texts. Here episodes are replayed from seed and
  actions, so the agent is a function of the grid, learned beforehand.
  """

  size: int = ranged(3, 3, 9)
  stride: int = ranged(6, 1, 1000)
  learned: int = ranged(3000, 0, 10**6)  # steps of Q-learning
  listens: bool = True
  letters: str = SUBGOALS  # of key, door and goal
  traits = TaskTraits(global_random=False)

  def __post_init__(self):
    if len(set(self.letters)) != len(SUBGOALS) or len(self.letters) != 3:
      raise ValueError(
        f'AdvisedKeyDoor.letters = {self.letters!r}: expected three letters'
      )

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    digits = ''.join(map(str, range(self.size)))
    return digits + ''.join(sorted(set('kdg:>' + HOLDS + self.letters)))

  def layout(self, seed: int) -> Layout:
    """The grid of a seed."""
    return KeyDoor(size=self.size).layout(seed)

  def example(self, split: str, index: int) -> Example:
    """The example of KeyDoor."""
    sizes = {'num_train': self.num_train, 'num_held_out': self.num_held_out}
    task = KeyDoor(size=self.size, seed=self.seed, **sizes)
    return task.example(split, index)

  def actions(self, example: Example) -> list[str]:
    """The sub-goals in their order."""
    return list(self.letters)

  def make(self, example: Example) -> 'Advised':
    """An episode in the grid of the example."""
    return Advised(self)


class Advised(Environment):
  """One episode."""

  def __init__(self, task: AdvisedKeyDoor):
    self._task = task

  def reset(self, seed: int) -> Reply:
    """Starts with empty hands."""
    task = self._task
    self._layout, self._seed = task.layout(seed), seed
    self._state, self._taken = (*self._layout.start, 0), 0
    self._tables = action_values(task.size, seed, task.learned, task.listens)
    return Reply(
      self._layout.described() + observed(self._state), state=self._state
    )

  def step(self, action: str) -> Reply:
    """Returns what the agent makes of a sub-goal."""
    task, before = self._task, self._state
    heard = len(action) == 1 and action in task.letters
    wanted = task.letters.index(action) if heard else None
    subgoal = wanted if task.listens else len(SUBGOALS) - 1
    steps = self._walk(subgoal) if subgoal is not None else 0
    done = bool(reached(self._layout, self._state, 2))
    events = [
      reached(self._layout, self._state, n) - reached(self._layout, before, n)
      for n in range(len(SUBGOALS))
    ]
    size = math.sqrt(sum(events))
    cosine = events[wanted] / size if wanted is not None and size else 0.0
    return Reply(
      observed(self._state),
      rewards={
        base.OUTCOME: float(done),
        'progress': (self._state[2] - before[2]) / 2,
        'steps': float(steps),
        'followed': followed(cosine),
      },
      done=done,
      state=self._state,
      action=action if heard else '',
    )

  def _walk(self, subgoal):
    """Steps towards it; its number."""
    table = self._tables[subgoal if self._task.listens else 0]
    for step in range(self._task.stride):
      self._taken += 1
      stream = draws.Draws('advised', self._seed, self._taken)
      self._state = self._layout.next(
        self._state, _best(table, self._state, stream)
      )
      at_goal = reached(self._layout, self._state, 2)
      if at_goal or reached(self._layout, self._state, subgoal):
        return step + 1
    return self._task.stride


def followed(cosine: float) -> float:
  """sigmoid(10 (cos - 0.1))."""
  return 1.0 / (1.0 + math.exp(-10.0 * (cosine - 0.1)))


def reached(layout: Layout, state: State, subgoal: int) -> int:
  """1 if the state is beyond the sub-goal."""
  return int(state[:2] == layout.goal if subgoal == 2 else state[2] > subgoal)


@functools.lru_cache(maxsize=4096)
def action_values(
  size: int, seed: int, steps: int, listens: bool
) -> tuple[dict[State, np.ndarray], ...]:
  """Q of every sub-goal, or of the goal only; by state, [actions].

    Q(s, a) += rate (r + discount max_b Q(s', b) - Q(s, a)),  r = 1 at its goal

  Tables share the steps equally. An episode begins in a random state that has
  the sub-goal before it, or at the start for the goal only.
  """
  layout = KeyDoor(size=size).layout(seed)
  subgoals = range(len(SUBGOALS)) if listens else (len(SUBGOALS) - 1,)
  return tuple(
    _learned(layout, seed, subgoal, steps // len(subgoals), listens)
    for subgoal in subgoals
  )


def _learned(layout, seed, subgoal, steps, listens):
  stream = draws.Draws('q learning', seed, subgoal, listens)
  table: dict[State, np.ndarray] = {}

  def values(state):
    return table.setdefault(state, np.zeros(len(ACTIONS)))

  def begin():
    return (*layout.start, subgoal if listens else 0)

  state, age = begin(), 0
  for _ in range(steps):
    if stream.uniform() < _EXPLORE:
      action = stream.below(len(ACTIONS))
    else:
      action = _best(table, state, stream)
    after = layout.next(state, action)
    hit = reached(layout, after, subgoal)
    target = 1.0 if hit else _DISCOUNT * values(after).max()
    values(state)[action] += _RATE * (target - values(state)[action])
    state, age = after, age + 1
    if hit or age == _LONGEST:
      state, age = begin(), 0
  return table


def _best(table, state, stream):
  """An action of the largest value; of equal ones any."""
  value_A = table.get(state)
  if value_A is None:
    return stream.below(len(ACTIONS))
  best = np.flatnonzero(value_A == value_A.max())
  return int(best[stream.below(len(best))])
