"""Forms whose instruction a model has written for the page to be reached."""

import dataclasses
import functools

from rl_jax import checks
from rl_jax.checks import checked, ranged
from rl_jax.tasks import draws
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import seed_of
from rl_jax.tasks.sources import BadRowError
from rl_jax.worlds.web_form import EMPTY, Filling, WebForm

_GOAL, _ASKED = 'goal', 'instruction'  # fields of rows, and in Example.meta


@dataclasses.dataclass(frozen=True)
@checked
class InstructedForm(WebForm):
  """WebForm whose train prompts have goals and instructions of a file.

  path: rows {goal, instruction}. The goal, a character a field, is the page
  that is rewarded; the instruction is what the episode begins with in place of
  the one that says the goal, right or wrong. Held-out forms are those of
  WebForm.
  Source: the data of the instructor of Gur et al., "Learning to Navigate the
  Web" (INET), reconstructed.
  """

  path: str = ''
  max_row_bytes: int = ranged(1_000_000, 1)

  def __post_init__(self):
    super().__post_init__()
    if not self.path or self.goals:
      raise ValueError(
        f'InstructedForm.path = {self.path!r}, goals = {self.goals}: '
        'expected a file, which has the goals, and no others'
      )

  def num_prompts(self, split: str) -> int:
    """The rows of the file, and held-out forms."""
    return len(self._rows) if split == 'train' else super().num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """The row of that index, or a held-out form."""
    if split != 'train':  # the seeds of examples depend on the class
      return self._held_out.example(split, index)
    example = super().example(split, index)
    meta = {**example.meta, **self._rows[index]}
    return dataclasses.replace(example, meta=meta)

  def pages(self, example: Example) -> tuple[str, str]:
    """(the page that is rewarded, the first one), a character a field."""
    goal = example.meta.get(_GOAL)
    if goal is None:
      return super().pages(example)
    stream = draws.Draws('instructed form', seed_of(example))
    share = example.meta['filled']
    first = (x if stream.uniform() < share else EMPTY for x in goal)
    return goal, ''.join(first)

  def make(self, example: Example) -> Filling:
    """An episode that begins with the instruction of the row."""
    return Filling(self, *self.pages(example), example.meta.get(_ASKED))

  @functools.cached_property
  def _held_out(self) -> WebForm:
    """The task with the same fields whose held-out forms these are."""
    names = (field.name for field in dataclasses.fields(WebForm))
    return WebForm(**checks.values(self, names))

  @functools.cached_property
  def _rows(self) -> tuple[dict[str, str], ...]:
    """The goals and instructions of the file.

    Raises: ValueError naming a row that has none for forms of this size.
    """
    found = []
    for _, number, record in rows_lib.read_records(
      self.path, 'train', self.max_row_bytes, None
    ):
      if isinstance(record, BadRowError):
        raise record
      goal, asked = record.get(_GOAL), record.get(_ASKED)
      texts = isinstance(goal, str) and isinstance(asked, str)
      if not texts or len(goal) != self.fields:
        raise ValueError(
          f'InstructedForm.path = {self.path!r}: row {number} has the goal '
          f'{goal!r} and the instruction {asked!r}: expected two texts, the '
          f'goal of {self.fields} characters'
        )
      found.append({_GOAL: goal, _ASKED: asked})
    return tuple(found)
