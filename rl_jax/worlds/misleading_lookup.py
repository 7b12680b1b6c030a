"""Questions to a dictionary, whose first way is often a dead end."""

import dataclasses
import string

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply

NOTHING = '-'
_NONE = dict.fromkeys((base.OUTCOME, 'found', 'dead_end', 'recovered'), 0.0)
THOUGHTS = 'xyz'  # letters without a meaning, for texts that are inserted


@dataclasses.dataclass(frozen=True)
@checked
class MisleadingLookup(EnvironmentTask):
  """Two hops: a word leads to two others, of which one has the value.

  First observation 'c?'. The last letter of a turn counts, others are thoughts:
  a word looks itself up ('c>ea' names two words, 'e>-' is a dead end, 'a>2' has
  the value), a digit answers and ends the episode. With probability `trap` the
  word that is named first is the dead end. Components: `outcome` 1 for the
  right digit; `found` 1 when the value is first observed; `dead_end` 1 when a
  dead end is first met; `recovered` is `outcome` after one.
  Source: this code.
  """

  num_words: int = ranged(5, 3, 20)
  num_values: int = ranged(5, 2, 10)
  trap: float = ranged(0.5, 0.0, 1.0)
  reward_weights: dict[str, float] = base.outcome_only()
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    words = string.ascii_lowercase[: self.num_words]
    return words + string.digits[: self.num_values] + '?>' + NOTHING + THOUGHTS

  def make(self, example: Example) -> 'Questioning':
    """An episode with one question."""
    return Questioning(self)


class Questioning(Environment):
  """One episode."""

  def __init__(self, task: MisleadingLookup):
    self._task = task

  def reset(self, seed: int) -> Reply:
    """Draws the words and the value."""
    task, stream = self._task, draws.Draws('lookup', seed)
    every = string.ascii_lowercase[: task.num_words]
    words = list(every)
    drawn = [words.pop(stream.below(len(words))) for _ in range(3)]
    self._question, *named = drawn
    self._value = string.digits[stream.below(task.num_values)]
    right = named[1 if stream.uniform() < task.trap else 0]
    self._book = dict.fromkeys(every, NOTHING)
    self._book[self._question] = ''.join(named)
    self._book[right] = self._value
    self._dead = self._found = False
    return Reply(f'{self._question}?', state='')

  def step(self, action: str) -> Reply:
    """A letter that is neither word nor value says nothing."""
    last = action[-1:]
    values = string.digits[: self._task.num_values]
    if last and last in values:
      right = float(last == self._value)
      rewards = {**_NONE, base.OUTCOME: right, 'recovered': right * self._dead}
      return Reply(rewards=rewards, done=True, action=last)
    if last not in self._book:
      return Reply(NOTHING, rewards=_NONE, state=last, action='')
    said = self._book[last]
    dead = said == NOTHING and not self._dead
    found = said == self._value and not self._found
    self._dead, self._found = self._dead or dead, self._found or found
    rewards = {**_NONE, 'dead_end': float(dead), 'found': float(found)}
    return Reply(f'{last}>{said}', rewards=rewards, state=last, action=last)
