"""Weights & Biases."""

from collections.abc import Mapping
from typing import Any


class WeightsAndBiases:
  """Rows over `step`; a continued run continues with the same run there.

  Steps that are repeated after an interruption appear twice.
  """

  name = 'Weights & Biases'

  def __init__(self, place: Any):
    self._place = place
    self._run: Any = None

  def start(self, next_step: int | None) -> None:
    """Opens the run."""
    del next_step
    import wandb

    place = self._place
    self._run = wandb.init(
      project=place.project,
      name=place.name,
      id=place.run_id('wandb') or place.remember('wandb'),
      resume='allow',
      dir=place.workdir,
      config=dict(place.config),
    )
    # Its own counter of steps could not go back.
    self._run.define_metric('*', step_metric='step')

  def log(self, row: Mapping[str, Any]) -> None:
    """Sends a row."""
    self._run.log(dict(row))

  def close(self) -> None:
    """Ends the run; waits until all is sent."""
    run, self._run = self._run, None
    if run is not None:
      run.finish()
