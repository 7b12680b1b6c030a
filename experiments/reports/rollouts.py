"""Selects the responses that a report shows from a file of any size."""

import json
import os
import re
from typing import Any

import numpy as np

from experiments.reports.workdirs import Run
from rl_jax.records import metrics
from rl_jax.tasks.base import Task

_STEP = re.compile(rb'\{"step": (\d+)[,}]')
TEXTS = ('prompt', 'response', 'answer', 'error')


def read(run: Run, max_bytes: int) -> tuple[dict[str, Any], list[str]]:
  """({steps, rows, prompts}, notes) with about max_bytes of the file.

  From a larger file iterations are selected: the first, the last and others
  evenly spaced, each with all its responses. Rows refer to their prompt by its
  index in prompts. Of tasks with `as_read` they have the answer and the
  response as a person reads them.
  """
  name, notes = metrics.ROLLOUTS, []
  path = os.path.join(run.path, name)
  if not os.path.exists(path):
    return _empty(), [f'{name} is missing']
  places = _index(path)
  if not places:
    return _empty(), [f'{name} holds no response']
  sizes = {step: sum(n for _, n in found) for step, found in places.items()}
  steps = choose(sizes, max_bytes)
  rows, left_out, used = [], 0, 0
  task = run.config.task if run.config is not None else None
  as_read = task.as_read if isinstance(task, Task) else str
  with open(path, 'rb') as file:
    for step in steps:
      for offset, size in places[step]:
        if used + size > max_bytes and rows:
          left_out += 1
          continue
        file.seek(offset)
        try:
          row = metrics.from_json(json.loads(file.read(size)))
          rows.append(_row(row) | _as_read(row, as_read))
          used += size
        except (ValueError, TypeError, KeyError):
          notes.append(f'a line of iteration {step} in {name} is broken')
  if len(steps) < len(places) or left_out:
    notes.append(
      f'rollouts of {len({r["step"] for r in rows}):,} of {len(places):,} '
      f'iterations are in this page ({used / 1e6:.1f} of '
      f'{sum(sizes.values()) / 1e6:.1f} MB; --max_megabytes)'
    )
  prompts = list(dict.fromkeys(row['prompt'] for row in rows))
  place = {prompt: i for i, prompt in enumerate(prompts)}
  for row in rows:
    row['prompt'] = place[row['prompt']]
  found = sorted({row['step'] for row in rows})
  return {'steps': found, 'rows': rows, 'prompts': prompts}, notes


def choose(sizes: dict[int, int], max_bytes: int) -> list[int]:
  """Steps to show, evenly spaced with both ends, within max_bytes.

  At least one step; the caller cuts it if a single step is too large.
  """
  steps = sorted(sizes)
  count = len(steps)
  while count > 1:
    picked = np.unique(np.linspace(0, len(steps) - 1, count).round())
    chosen = [steps[int(i)] for i in picked]
    total = sum(sizes[step] for step in chosen)
    if total <= max_bytes:
      return chosen
    count = min(count - 1, max(1, int(count * max_bytes / total)))
  return steps[-1:]


def _empty() -> dict[str, Any]:
  return {'steps': [], 'rows': [], 'prompts': []}


def _index(path: str) -> dict[int, list[tuple[int, int]]]:
  """Step -> (offset, bytes) of its lines, without parsing JSON."""
  places: dict[int, list[tuple[int, int]]] = {}
  offset = 0
  with open(path, 'rb') as file:
    for line in file:
      found = _STEP.match(line)
      if found and line.endswith(b'\n'):
        step = int(found[1])
        places.setdefault(step, []).append((offset, len(line)))
      offset += len(line)
  return places


def _row(row: dict[str, Any]) -> dict[str, Any]:
  """The fields of a response that the page reads, ready for JSON."""
  reward = row.get('reward')
  texts = {
    name: None if row.get(name) is None else str(row[name]) for name in TEXTS
  }
  tokens = row.get('tokens') or {}
  lengths = {len(values) for values in tokens.values()}
  if len(lengths) > 1 or (tokens and 'text' not in tokens):
    raise ValueError('fields of tokens differ in length')
  return {
    'step': int(row['step']),
    'id': str(row.get('prompt_id', '')),
    'sample': row.get('sample', 0),
    **texts,
    'prompt': texts['prompt'] or '',
    'response': texts['response'] or '',
    'reward': _number(reward),
    'weight': _number(row.get('weight', 1.0)),
    **_turns(row),
    'tokens': {
      name: list(map(str, values))
      if name == 'text'
      else [_number(x) for x in values]
      for name, values in tokens.items()
    },
  }


def _turns(row: dict[str, Any]) -> dict[str, Any]:
  """An episode: what each turn read, did, called and earned, and its end."""
  if 'turns' not in row:
    return {}
  turns = [
    {
      'observation': str(turn['observation']),
      'action': str(turn['action']),
      # As the environment understood it, where that differs.
      'understood': _other(turn.get('understood'), str(turn['action'])),
      'calls': int(turn.get('calls') or 0),
      'rewards': {
        str(k): _number(x) for k, x in (turn.get('rewards') or {}).items()
      },
    }
    for turn in row['turns']
  ]
  last = str(row.get('last_observation', ''))
  return {'turns': turns, 'end': str(row.get('end', '')), 'last': last}


def _other(text: Any, known: str) -> str | None:
  """The text, or None if it says nothing that is not known."""
  return None if text is None or str(text) == known else str(text)


def _as_read(row: dict[str, Any], as_read) -> dict[str, str]:
  """{name_read: text} of the answer and the response, where it differs."""
  texts = {name: str(row.get(name) or '') for name in ('answer', 'response')}
  read = {name: as_read(text) for name, text in texts.items()}
  return {f'{n}_read': x for n, x in read.items() if x != texts[n]}


def _number(value: Any) -> float | None:
  """The value, or None if it is missing or not finite."""
  ok = isinstance(value, (int, float)) and np.isfinite(value)
  return value if ok else None
