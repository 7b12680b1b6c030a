"""Warnings that may come in every iteration: said once, then counted."""

import collections

from absl import logging


class RepeatedWarnings:
  """Logs a warning the 1st, 10th, 100th, ... time; the count is in the text.

  Texts are distinguished by `text`, before its arguments are filled in. A run
  makes its own, so that another run in the same process starts from 0.
  """

  def __init__(self):
    self._counts: collections.Counter[str] = collections.Counter()

  def warn(self, text: str, *args: object) -> None:
    """Logs `text % args` if it is due."""
    self._counts[text] += 1
    count = self._counts[text]
    if count == 1:
      logging.warning(text + ' (later ones are only counted)', *args)
    elif str(count).strip('0') == '1':
      logging.warning(text + ' (%d times so far)', *args, count)
