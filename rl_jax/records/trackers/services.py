"""The trackers of a run, and the names of its runs at services."""

from collections.abc import Mapping
import dataclasses
import importlib.util
import json
import os
from typing import Any
import uuid

from rl_jax.checks import checked
from rl_jax.records.trackers.guarded import Guarded, InBackground
from rl_jax.records.trackers.mlflow import MLflow
from rl_jax.records.trackers.tensorboard import TensorBoard
from rl_jax.records.trackers.wandb import WeightsAndBiases
from rl_jax.runtime.writer import sole_writer

FILE = 'trackers.json'
# Name -> (class, import name of its package, what to give to pip).
KNOWN: dict[str, tuple[Any, str, str]] = {
  'tensorboard': (TensorBoard, 'tensorboardX', 'tensorboardX'),
  'wandb': (WeightsAndBiases, 'wandb', "'rl_jax[wandb]'"),
  'mlflow': (MLflow, 'mlflow', "'rl_jax[mlflow]'"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class TrackingConfig:
  """The destinations of metrics besides metrics.jsonl.

  trackers: 'tensorboard' (files in the work directory), 'wandb', 'mlflow'.
  project: of wandb; the experiment of mlflow; None: 'rl_jax'. name: of the run
    there; None: the name of the work directory.
  """

  trackers: tuple[str, ...] = ('tensorboard',)
  project: str | None = None
  name: str | None = None

  def __post_init__(self):
    for name in self.trackers:
      if not isinstance(name, str) or name not in KNOWN:
        raise ValueError(
          f'tracking.trackers: {name!r} is none of {", ".join(KNOWN)}'
        )


def check(config: TrackingConfig) -> None:
  """Raises ValueError naming what is missing: a package, or an extra."""
  for name in config.trackers:
    _, package, wanted = KNOWN[name]
    if importlib.util.find_spec(package) is None:
      raise ValueError(
        f'tracking.trackers has {name!r}, but the package {package} is not '
        f'installed: pip install {wanted}'
      )


def make(
  config: TrackingConfig, workdir: str | os.PathLike[str], about: Any
) -> list[Guarded | InBackground]:
  """The trackers of a run; a continued run keeps its names at services.

  about: the configuration of the run as JSON holds it, for services to show.
  """
  found: list[Guarded | InBackground] = []
  for name in config.trackers:
    if name == 'tensorboard':
      found.append(Guarded(TensorBoard(workdir)))
      continue
    title = config.name or os.path.basename(os.path.abspath(workdir))
    place = Place(os.fspath(workdir), config.project or 'rl_jax', title, about)
    found.append(InBackground(KNOWN[name][0](place)))
  return found


@dataclasses.dataclass(frozen=True)
class Place:
  """The place of a work directory's run at a service."""

  workdir: str
  project: str
  name: str
  config: Mapping[str, Any]

  def run_id(self, service: str) -> str | None:
    """Returns what `remember` kept, or None."""
    try:
      with open(self._path, encoding='utf-8') as file:
        return json.load(file).get(service)
    except (OSError, ValueError, AttributeError):
      return None

  def remember(self, service: str, run_id: str | None = None) -> str:
    """Keeps the id of a run, by default a new one, in the work directory."""
    run_id = run_id or uuid.uuid4().hex[:12]
    try:
      with open(self._path, encoding='utf-8') as file:
        known = dict(json.load(file))
    except (OSError, TypeError, ValueError):
      known = {}
    with sole_writer().replacing(self._path) as file:
      file.write(json.dumps({**known, service: run_id}).encode())
    return run_id

  @property
  def _path(self):
    return os.path.join(self.workdir, FILE)
