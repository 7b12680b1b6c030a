"""Trials of a frozen actor, between which the policy writes reflections."""

import dataclasses
import string

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Ask,
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)
from rl_jax.worlds.partner_lessons import Lessons

ACTOR = 'actor'
PLACES = 10
_MOVES = 'ud'


@dataclasses.dataclass(frozen=True)
@checked
class Reflections(EnvironmentTask, Lessons):
  """An actor goes to a place 0..9; its observations change its next trial.

  The policy reads a trial as '4<' (the goal is above 4) or '4>' and writes a
  reflection: 'u3' (up by 3) or 'd3'. The actor's next place is the last one
  moved by it, within 0..9; other reflections leave it where it was. An episode
  ends at the goal or after `trials` trials.
  actor: 'script' does that itself; 'model' is the partner 'actor', asked
    '4u3='; 'constant' always repeats its trial: the reward is 0.
  Components: `outcome` G_{i+1} - G_i of the reflection after trial i, with
  G = 1 - |place - goal| / 9; `success_i` 1 if the goal was reached in trial i
  or before, which weigh nothing by default.
  Source: "Retroformer: Retrospective Large Language Agents with Policy Gradient
  Optimization"; weirayao/Retroformer, by a digest: there a reward model is
  trained on these differences; the task is of this code.
  """

  trials: int = ranged(4, 2, 9)
  actor: str = chosen('script', ('script', 'model', 'constant'))
  alphabet = '0123456789<>' + _MOVES
  partner_alphabet = '0123456789=' + _MOVES

  @property
  def traits(self) -> TaskTraits:
    """The actor is asked if it is a model."""
    asks = (ACTOR,) if self.actor == 'model' else ()
    return TaskTraits(asks=asks, global_random=False)

  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """A place and a reflection, and where it leads."""
    place, size = stream.below(PLACES), stream.below(10)
    text = f'{_MOVES[stream.below(2)]}{size}'
    return f'{place}{text}=', str(moved(place, text))

  def make(self, example: Example) -> 'Trying':
    """An episode with the first place and the goal of the example."""
    stream = draws.Draws('reflections', seed_of(example))
    place, goal = stream.below(PLACES), stream.below(PLACES - 1)
    return Trying(self, place, goal + (goal >= place))


def moved(place: int, reflection: str) -> int:
  """Returns where the reflection leads."""
  known = len(reflection) == 2 and reflection[0] in _MOVES
  if not (known and reflection[1] in string.digits):
    return place
  sign = 1 if reflection[0] == 'u' else -1
  return min(max(place + sign * int(reflection[1]), 0), PLACES - 1)


def value(place: int, goal: int) -> float:
  """G = 1 - |place - goal| / 9."""
  return 1.0 - abs(place - goal) / (PLACES - 1)


class Trying(Environment):
  """One episode."""

  def __init__(self, task: Reflections, place: int, goal: int):
    self._task, self._place, self._goal = task, place, goal
    self._trial, self._waits = 1, False

  def reset(self, seed: int) -> Reply:
    """The first trial, which never reaches the goal."""
    del seed  # that of the example
    return Reply(self._observed(), state=self._observed())

  def step(self, action: str) -> Reply:
    """A reflection, or the place of the partner's trial."""
    if self._waits:
      self._waits = False
      known = len(action) == 1 and action in string.digits
      return self._tried(int(action) if known else self._place)
    if self._task.actor == 'model':
      self._waits = True
      return Reply(ask=Ask(ACTOR, f'{self._place}{_written(action)}='))
    constant = self._task.actor == 'constant'
    return self._tried(self._place if constant else moved(self._place, action))

  def _tried(self, place):
    """The reply to the trial after a reflection."""
    before = value(self._place, self._goal)
    self._place, self._trial = place, self._trial + 1
    success, last = place == self._goal, self._trial == self._task.trials
    rewards = {base.OUTCOME: value(place, self._goal) - before}
    ends = self._task.trials if success else self._trial
    for trial in range(self._trial, ends + 1):
      rewards[f'success_{trial}'] = float(success)
    done = success or last
    observed = '' if done else self._observed()
    return Reply(observed, rewards=rewards, done=done, state=observed or None)

  def _observed(self):
    return f'{self._place}{"<" if self._place < self._goal else ">"}'


def _written(action):
  """The part of a reflection that the actor's alphabet has."""
  return ''.join(x for x in action if x in string.digits + _MOVES)
