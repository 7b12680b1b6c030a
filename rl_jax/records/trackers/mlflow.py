"""MLflow: a server by MLFLOW_TRACKING_URI, or files."""

from collections.abc import Mapping
import math
import time
from typing import Any


class MLflow:
  """Finite numbers by step; a continued run appends to the same MLflow run."""

  name = 'MLflow'

  def __init__(self, place: Any):
    self._place = place
    self._client: Any = None
    self._id = ''

  def start(self, next_step: int | None) -> None:
    """Opens the run."""
    del next_step
    import mlflow

    place, client = self._place, mlflow.MlflowClient()
    known = place.run_id('mlflow')
    if known is None:
      experiment = client.get_experiment_by_name(place.project)
      where = (
        experiment.experiment_id
        if experiment
        else client.create_experiment(place.project)
      )
      known = client.create_run(where, run_name=place.name).info.run_id
      place.remember('mlflow', known)
      client.log_dict(known, dict(place.config), 'experiment.json')
    else:
      client.update_run(known, status='RUNNING')
    self._client, self._id = client, known

  def log(self, row: Mapping[str, Any]) -> None:
    """Sends the numbers of a row."""
    from mlflow.entities import Metric

    now, step = int(time.time() * 1000), int(row['step'])
    metrics = [
      Metric(name, float(value), now, step)
      for name, value in row.items()
      if isinstance(value, (int, float)) and math.isfinite(value)
    ]
    self._client.log_batch(self._id, metrics=metrics)

  def close(self) -> None:
    """Marks the run as finished."""
    client, self._client = self._client, None
    if client is not None:
      client.set_terminated(self._id)
