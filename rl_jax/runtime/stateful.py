"""The protocol of the parts of a run that checkpoints hold."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol


class Stateful(Protocol):
  """A part of a run whose state is saved and restored.

  A checkpoint is one tree of arrays and one JSON object. Each part adds entries
  to both, whose names are those of the files: they stay the same for ever.

  name: of the part, for messages.
  """

  name: ClassVar[str]

  def arrays(self) -> dict[str, Any]:
    """Its entries of the tree of arrays, by name."""
    return {}

  def host(self) -> dict[str, Any]:
    """Its entries of the JSON object, by name."""
    return {}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Continues from a checkpoint.

    Args:
      arrays: the entries of all parts; every one that `arrays` has now is
        there.
      host: the entries of all parts; checkpoints of earlier versions may lack
        some.
    """
    del arrays, host
