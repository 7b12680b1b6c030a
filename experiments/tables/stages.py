"""Stages of a job that are done once: their results in one JSON file."""

from collections.abc import Callable
import json
import os
from typing import Any


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
