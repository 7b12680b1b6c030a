"""A task whose responses begin with a word for the mode that they are in."""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from rl_jax.checks import checked
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.wrapped import Wrapped

MODE = 'mode'  # component


@dataclasses.dataclass(frozen=True)
@checked
class OpenedModes(Wrapped):
  """The task with modes that the policy chooses by how its response begins:

    OpenedModes(task=QuestionAnswer(...),
                openings={'short': '<short>', 'think': '<think>'})

  openings: name of a mode -> the text; the cheapest mode first.
  Component `mode`: the number of the mode in that order, and the number of
  modes for a response that begins in none. The rest is judged by the task with
  its opening, which prompts may hold already (InMode).
  Source: the control tokens of Thinkless (VainF/Thinkless).

  Raises: ValueError for less than two modes, or for an opening that begins
    another one.
  """

  # They read or write what is judged here.
  not_passed: ClassVar[tuple[str, ...]] = (
    'reward_device',
    'device_answers',
    'make',
  )

  task: Any
  openings: dict[str, str] = dataclasses.field(hash=False)

  def __post_init__(self):
    super().__post_init__()
    texts = list(self.openings.values())
    if len(texts) < 2 or not all(texts):
      raise ValueError(
        f'OpenedModes.openings = {self.openings}: expected two modes at least, '
        'each with a text'
      )
    for one in texts:
      if sum(other.startswith(one) for other in texts) > 1:
        raise ValueError(
          f'OpenedModes.openings = {self.openings}: {one!r} begins another one'
        )

  @property
  def traits(self) -> TaskTraits:
    """The task's traits, with the modes."""
    return dataclasses.replace(super().traits, modes=dict(self.openings))

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The task's components, and `mode`."""
    text = (example.prefill + response).lstrip()
    begun = [text.startswith(one) for one in self.openings.values()]
    mode = begun.index(True) if any(begun) else len(begun)
    found = dict(super().reward(example, response))
    if MODE in found:
      raise ValueError(f'{type(self.task).__name__} has the component {MODE!r}')
    return {**found, MODE: float(mode)}
