"""Files of responses with labels of their steps, taken to the letter."""

import dataclasses

from rl_jax.checks import checked
from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.preference_forms import STEP_END
from rl_jax.tasks.preference_rows import PreferenceRows


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class StepRows(PreferenceRows):
  """Rows of steps like PreferenceRows, which end as they are, without a new
  line.

  For alphabets without one. Rows are {prompt, completions, labels}, labels from
  0 to 1, one of each step.

  Raises: ValueError for rows without steps.
  """

  form: str = 'steps'

  def __post_init__(self):
    if self.form != 'steps':
      raise ValueError(f"StepRows.form = {self.form!r}: it is 'steps'")

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The response, its steps without the ends that PreferenceRows adds."""
    (record,) = super().logged(example)
    steps = tuple(step.removesuffix(STEP_END) for step in record.steps)
    return (dataclasses.replace(record, text=''.join(steps), steps=steps),)
