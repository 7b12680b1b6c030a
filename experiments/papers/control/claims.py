"""Claims that are named before their runs, and what five seeds say of them."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import numpy as np

from experiments.tables import intervals
from rl_jax.types import Array

# Metric -> arm -> a value for each seed.
Results = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Claim:
  """The metric of `low` is below `factor` times that of `high`.

  seen: so it is, and the 95% interval of the paired difference excludes 0;
  contrary: it is above, with the same; not seen: the interval holds 0.
  """

  text: str
  metric: str
  low: str
  high: str
  factor: float = 1.0

  def verdict(self, results: Results) -> str:
    """One of the three, with the interval of factor * high - low."""
    arms = results[self.metric]
    gap_S = self.factor * np.asarray(arms[self.high]) - np.asarray(
      arms[self.low]
    )
    least, most = intervals.mean_interval(gap_S)
    word = 'not seen'
    if least > 0:
      word = 'seen'
    elif most < 0:
      word = 'contrary'
    return f'{word} (margin {gap_S.mean():.3g} [{least:.3g}, {most:.3g}])'


@dataclasses.dataclass(frozen=True)
class Row:
  """A published system: its claims, and the function that measures them.

  measure: (keys of the seeds, factor on the number of updates) -> results; with
  takes_model the path of a language model is its third argument.
  seeds: of the run that is committed.
  """

  title: str
  claims: tuple[Claim, ...]
  measure: Callable[..., Results]
  seeds: int = 5
  takes_model: bool = False

  def results(self, key_S: Array, scale: float, model: str | None) -> Results:
    """Calls measure.

    Raises: ValueError naming --model where it is missing, or not read.
    """
    if self.takes_model != (model is not None):
      raise ValueError(
        f'--model={model}: '
        + (
          f'the row needs the path of a language model ({self.title})'
          if self.takes_model
          else f'the row reads no language model ({self.title})'
        )
      )
    given = () if model is None else (model,)
    return self.measure(key_S, scale, *given)
