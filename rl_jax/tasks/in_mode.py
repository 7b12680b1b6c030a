"""A task whose responses begin in a mode that is given."""

import dataclasses
from typing import Any, ClassVar

from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.wrapped import Wrapped


@dataclasses.dataclass(frozen=True)
class InMode(Wrapped):
  """The task with the beginning of one of its `modes` after every prompt.

  The policy continues it, and the verifier judges both: accuracy in a mode that
  the user asks for (ARM calls it instruction-guided). For EvaluationSet.

  Raises: ValueError if the task has no such mode.
  """

  # They read or write what follows the prompt.
  not_passed: ClassVar[tuple[str, ...]] = tuple(
    name for name in base.OPTIONAL if name != 'reward'
  )

  task: Any
  mode: str

  def __post_init__(self):
    super().__post_init__()
    modes = self.task.traits.modes
    if self.mode not in modes:
      raise ValueError(
        f'InMode.mode = {self.mode!r}: {type(self.task).__name__} has '
        f'{", ".join(modes) or "no modes"}'
      )

  @property
  def traits(self) -> TaskTraits:
    """The task's traits; the mode has been chosen."""
    return dataclasses.replace(super().traits, modes={})

  def example(self, split: str, index: int) -> Example:
    """The task's, with the mode's beginning as prefill."""
    example = self.task.example(split, index)
    prefill = example.prefill + self.task.traits.modes[self.mode]
    return dataclasses.replace(example, prefill=prefill)
