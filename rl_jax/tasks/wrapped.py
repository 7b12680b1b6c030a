"""Tasks that change something of another task."""

from typing import Any, ClassVar


class Wrapped:
  """Base of a task on another one, its field `task`.

  Prompts, targets, weights and optional members that the class does not define
  are those of the task, but for the names in `not_passed`.
  """

  not_passed: ClassVar[tuple[str, ...]] = ()

  @property
  def inner(self) -> Any:
    """What members are taken of: the task, or how a class reads its data."""
    return self.task

  def __getattr__(self, name: str) -> Any:
    own = name in ('task', 'inner') or name in self.not_passed
    if own or name.startswith('__'):  # `task` while it is unpickled
      raise AttributeError(name)
    return getattr(self.inner, name)
