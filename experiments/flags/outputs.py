"""Files that a command writes at its end: checked before it computes."""

from collections.abc import Iterable, Mapping
import json
import os
from typing import Any


def check_file(flag: str, path: str) -> None:
  """Raises ValueError naming the flag if no file can be written there."""
  folder = os.path.dirname(path) or '.'
  writable = os.path.isdir(folder) and os.access(folder, os.W_OK)
  if not path or os.path.isdir(path) or not writable:
    raise ValueError(f'--{flag}={path}: no file can be written there')


def write_json(path: str, value: Any) -> None:
  """Writes a JSON file at once, or not at all."""
  with open(path + '.tmp', 'w', encoding='utf-8') as file:
    json.dump(value, file)
  os.replace(path + '.tmp', path)


def write_rows(path: str, rows: Iterable[Mapping[str, Any]]) -> None:
  """Writes a JSONL file at once, or not at all."""
  with open(path + '.tmp', 'w', encoding='utf-8') as file:
    file.writelines(json.dumps(row) + '\n' for row in rows)
  os.replace(path + '.tmp', path)
