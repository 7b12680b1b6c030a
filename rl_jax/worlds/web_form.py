"""A form to be filled in as an instruction says, described in text."""

import dataclasses
import string

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

SUBMIT, EMPTY = 's', '-'


@dataclasses.dataclass(frozen=True)
@checked
class WebForm(EnvironmentTask):
  """Fields a, b, ... that want a digit each; an action a turn.

  First observation 'a3b0:a-b-s>': the instruction and the page, '-' in an empty
  field; later ones the page. Action 'a3' writes 3 into field a, 's' submits,
  which ends the episode; any other text does nothing.
  filled: probability with which each field of the first page is right already
    (else it is empty), for the training prompt of index i the one at place
    i modulo their number: a selector such as BetaPosterior makes a curriculum
    of them. Held-out forms are empty.
  goals: number of fields that the instruction names, in the same way by index;
    others must stay empty. (): all, as in held-out forms.
  discount: of the potential, per turn.
  Components: `outcome` 1 for a submitted page that is the goal, `end` 1 or -1
  at submission, `potential` discount * Phi' - Phi with Phi the share of right
  elements of the page, `invalid`.
  Source: Gur et al., "Learning to Navigate the Web"; reconstructed from the
  abstract and patent claims. There pages are of MiniWoB, and Q-learning acts.
  """

  fields: int = ranged(3, 1, 8)
  values: int = ranged(5, 2, 10)
  filled: tuple[float, ...] = (0.0,)
  goals: tuple[int, ...] = ()
  discount: float = ranged(0.99, 0.0, 1.0)
  traits = TaskTraits(global_random=False)

  def __post_init__(self):
    if not self.filled or not all(0.0 <= p <= 1.0 for p in self.filled):
      raise ValueError(
        f'WebForm.filled = {self.filled}: expected probabilities, at least one'
      )
    if not all(1 <= count <= self.fields for count in self.goals):
      raise ValueError(
        f'WebForm.goals = {self.goals}: expected counts from 1 to fields = '
        f'{self.fields}'
      )

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return self.names + string.digits[: self.values] + SUBMIT + EMPTY + ':>'

  @property
  def names(self) -> str:
    """The letters of the fields."""
    return string.ascii_lowercase[: self.fields]

  def example(self, split: str, index: int) -> Example:
    """The form of that index."""
    example, levels = super().example(split, index), {}
    if split == 'train':
      levels = {'filled': self.filled[index % len(self.filled)]}
      if self.goals:
        levels['goals'] = self.goals[index % len(self.goals)]
    return dataclasses.replace(example, meta={**example.meta, **levels})

  def pages(self, example: Example) -> tuple[str, str]:
    """(the page that is asked for, the first one), a character a field."""
    stream = draws.Draws('form', self.fields, self.values, seed_of(example))
    count = example.meta.get('goals', self.fields)
    wanted = [str(stream.below(self.values)) for _ in self.names]
    order = sorted(range(self.fields), key=lambda _: stream.uniform())
    for place in order[count:]:
      wanted[place] = EMPTY
    share = example.meta.get('filled', 0.0)
    first = [x if stream.uniform() < share else EMPTY for x in wanted]
    return ''.join(wanted), ''.join(first)

  def actions(self, example: Example) -> list[str]:
    """The words of a shortest solution."""
    pairs = zip(self.names, *self.pages(example), strict=True)
    return [name + goal for name, goal, now in pairs if now != goal] + [SUBMIT]

  def make(self, example: Example) -> 'Filling':
    """An episode on the form of the example."""
    return Filling(self, *self.pages(example))


class Filling(Environment):
  """One episode. asked: what replaces the instruction that says the goal."""

  def __init__(
    self, task: WebForm, goal: str, page: str, asked: str | None = None
  ):
    self._task, self._goal, self._page = task, goal, page
    self._asked = asked

  def reset(self, seed: int) -> Reply:
    """The instruction and the first page."""
    del seed  # that of the example
    asked = zip(self._task.names, self._goal, strict=True)
    observed = ''.join(name + x for name, x in asked if x != EMPTY)
    if self._asked is not None:
      observed = self._asked
    return Reply(f'{observed}:{self._observed()}', state=self._page)

  def step(self, action: str) -> Reply:
    """The page after an action; rewards at its submission."""
    task, before = self._task, self._phi()
    submitted, place = action == SUBMIT, task.names.find(action[:1])
    values = string.digits[: task.values]
    writes = len(action) == 2 and place >= 0 and action[1] in values
    if writes:
      page = self._page
      self._page = page[:place] + action[1] + page[place + 1 :]
    right = submitted and self._page == self._goal
    return Reply(
      '' if submitted else self._observed(),
      rewards={
        base.OUTCOME: float(right),
        'end': float(submitted) * (1.0 if right else -1.0),
        'potential': task.discount * self._phi() - before,
        'invalid': float(not (writes or submitted)),
      },
      done=submitted,
      state=self._page,
      action=action if writes or submitted else '',
    )

  def _phi(self):
    pairs = zip(self._page, self._goal, strict=True)
    return sum(x == y for x, y in pairs) / len(self._goal)

  def _observed(self):
    pairs = zip(self._task.names, self._page, strict=True)
    return ''.join(name + x for name, x in pairs) + f'{SUBMIT}>'
