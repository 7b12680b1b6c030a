"""Counts and messages of a pool about the calls of its workers."""

import collections
from collections.abc import Sequence
import logging

_LOGGER = logging.getLogger(__name__)


class Result:
  """Base of results with the fields `kind` and `detail`."""

  @property
  def kind(self) -> str:
    """'ok' or the kind of failure."""
    raise NotImplementedError

  @property
  def detail(self) -> str:
    """Returns what happened, for a message."""
    raise NotImplementedError

  @property
  def error(self) -> str | None:
    """Kind and detail of a failure, or None."""
    return None if self.kind == 'ok' else f'{self.kind}: {self.detail}'


class Tally:
  """Calls by kind; of each kind of failure the first call is logged."""

  def __init__(self, kinds: Sequence[str]):
    self._kinds = kinds
    self._counts = collections.Counter()
    self._recorded: set[str] = set()

  def counts(self) -> dict[str, int]:
    """Calls ever made, by kind."""
    return {kind: self._counts[kind] for kind in self._kinds}

  def add(self, kind: str, count: int = 1) -> None:
    """Counts calls that nothing is said of."""
    self._counts[kind] += count

  def hear(self, result: Result, what: str, where: str) -> None:
    """Counts a call; what: the name of calls, where: of which this is one."""
    self.add(result.kind)
    if result.kind != 'ok' and result.kind not in self._recorded:
      self._recorded.add(result.kind)
      _LOGGER.warning(
        what + ' of kind %r (later ones are only counted), %s: %s',
        result.kind,
        where,
        result.detail,
      )
