"""Stages of a job that are done once: their results in one JSON file."""

from collections.abc import Callable
import json
import os
from typing import Any

from rl_jax.config import ExperimentConfig
from rl_jax.runs import assembly, directory


def check_run(config: ExperimentConfig, folder: str) -> None:
  """Raises ValueError if the run there has another configuration.

  Its stage may be done: the flags of today would name what others have made.
  """
  if os.path.exists(os.path.join(folder, directory.CONFIG_FILE)):
    directory.check(assembly.with_compute_dtype(config), folder)


def once(
  path: str, name: str, function: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
  """The result of a stage: that of the file, or of function(), then stored."""
  done = {}
  if os.path.exists(path):
    with open(path) as file:
      done = json.load(file)
  if name not in done:
    print(f'--- {name}', flush=True)
    done[name] = {'stage': name, **function()}
    with open(path + '.tmp', 'w') as file:
      json.dump(done, file, indent=2)
    os.replace(path + '.tmp', path)
  return done[name]
