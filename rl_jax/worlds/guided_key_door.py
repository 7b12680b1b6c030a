"""KeyDoor whose hands are hidden, with sub-goals that an adviser has named."""

from collections.abc import Sequence
import dataclasses
import functools
import math

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import EnvironmentTask, Reply
from rl_jax.tasks.sources import BadRowError
from rl_jax.worlds.key_door import KeyDoor, Layout, Walk
from rl_jax.worlds.key_door_words import HOLDS

SUBGOALS = 'KDG'  # to take the key, to open the door, to reach the goal
NOTHING = 'n'  # no sub-goal
_MARKS = '-+'  # how well the last sub-goal was followed: badly, well
FIRST = HOLDS[0] + NOTHING + _MARKS[0]  # the situation at the start
# Every situation after a sub-goal, and the first one.
SITUATIONS = (
  FIRST,
  *(f'{h}{s}{m}' for h in HOLDS for s in SUBGOALS for m in _MARKS),
)


def followed(subgoal: str, reached: Sequence[str]) -> float:
  """l = sigmoid(10 (cos - 0.1)) of a sub-goal and what was reached after it.

  cos is that of indicators: 1 / sqrt(n) if the sub-goal is among the n things
  that were reached, else 0.
  """
  cosine = 1 / math.sqrt(len(reached)) if subgoal in reached else 0.0
  return 1 / (1 + math.exp(-10 * (cosine - 0.1)))


@dataclasses.dataclass(frozen=True)
@checked
class GuidedKeyDoor(EnvironmentTask):
  """KeyDoor that shows a sub-goal in place of what the policy holds: '01K>'.

  Sub-goals are 'K', 'D' and 'G' (SUBGOALS). Every `stride` turns there is a
  new one: the row of the situation says which. A situation has three
  characters: what is held, the last sub-goal, and '+' or '-' for `followed`
  above 1/2 or not; the first one is '-n-'. With chance `explore`, and where no
  row has the situation, the sub-goal is drawn. path: rows {situation, subgoal},
  ''; none. advised=False: there is no sub-goal, 'n' always.
  Components: `outcome` and `progress` of KeyDoor, and `followed`, at the end of
  a stride or of the episode, of weight 0 by default.
  Source: "RLAdapter: Bridging Large Language Models to Reinforcement Learning
  in Open Worlds"; PKU-RL/AdaRefiner, by a digest, where sub-goals of Crafter
  are embedded as texts, every 100 steps.
  """

  size: int = ranged(3, 3, 9)
  stride: int = ranged(4, 1)
  explore: float = ranged(0.2, 0.0, 1.0)
  advised: bool = True
  path: str = ''
  max_row_bytes: int = ranged(1_000_000, 1)
  reward_weights: dict[str, float] = base.weights_field(
    outcome=0.5, progress=0.5, followed=0.0
  )
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of KeyDoor, of sub-goals and of situations."""
    letters = self.grid.alphabet + SUBGOALS + NOTHING + _MARKS
    return ''.join(dict.fromkeys(letters))

  @property
  def grid(self) -> KeyDoor:
    """The task whose grids these are."""
    sizes = {'num_train': self.num_train, 'num_held_out': self.num_held_out}
    return KeyDoor(size=self.size, seed=self.seed, **sizes)

  def layout(self, seed: int) -> Layout:
    """The grid of a seed."""
    return self.grid.layout(seed)

  def example(self, split: str, index: int) -> Example:
    """The example of KeyDoor."""
    return self.grid.example(split, index)

  def make(self, example: Example) -> 'Guided':
    """An episode in the grid of the example."""
    return Guided(self)

  def subgoal(self, situation: str, stream: draws.Draws) -> str:
    """The sub-goal of a situation."""
    if not self.advised:
      return NOTHING
    known = self._advice.get(situation)
    if known is None or stream.uniform() < self.explore:
      return stream.choice(SUBGOALS)
    return known

  @functools.cached_property
  def _advice(self) -> dict[str, str]:
    """{situation: sub-goal} of the file."""
    found = {}
    if not self.path:
      return found
    rows = rows_lib.read_records(self.path, 'train', self.max_row_bytes, None)
    for file, number, row in rows:
      if isinstance(row, BadRowError):
        raise row
      situation, subgoal = row.get('situation'), row.get('subgoal')
      if situation not in SITUATIONS or subgoal not in tuple(SUBGOALS):
        raise BadRowError(
          f'{file}{number}',
          'wrong_type',
          f'situation {situation!r} and subgoal {subgoal!r}: expected one of '
          f'{SITUATIONS} and a letter of {SUBGOALS}',
        )
      found[situation] = subgoal
    return found


class Guided(Walk):
  """One episode."""

  def __init__(self, task: GuidedKeyDoor):
    super().__init__(task.grid)
    self._guide = task

  def reset(self, seed: int) -> Reply:
    """Starts with empty hands and a first sub-goal."""
    self._stream = draws.Draws('guided key door', seed)
    self._turns, self._reached = 0, []
    self._subgoal = self._guide.subgoal(FIRST, self._stream)
    return self._shown(super().reset(seed))

  def step(self, action: str) -> Reply:
    """The reply of KeyDoor, and at the end of a stride the next sub-goal."""
    before = self._state
    reply = super().step(action)
    earned = self._layout.rewards(before, self._state)
    if self.holds > before[2]:
      self._reached.append(SUBGOALS[before[2]])
    if reply.done:
      self._reached.append(SUBGOALS[2])
    self._turns += 1
    rewards = {name: earned[name] for name in (base.OUTCOME, 'progress')}
    rewards['followed'] = 0.0
    if reply.done or self._turns % self._guide.stride == 0:
      rewards['followed'] = followed(self._subgoal, self._reached)
      mark = _MARKS[rewards['followed'] > 0.5]
      if self._guide.advised:
        situation = HOLDS[self.holds] + self._subgoal + mark
        self._subgoal = self._guide.subgoal(situation, self._stream)
      self._reached = []
    return dataclasses.replace(self._shown(reply), rewards=rewards)

  def _shown(self, reply):
    """The reply with a sub-goal in the place of what is held."""
    text = f'{reply.observation[:-2]}{self._subgoal}>'
    return dataclasses.replace(reply, observation=text)
