"""Sets of runs: products, zips and chains of settings.

A setting is a dict {key: value}; the keys config and method choose modules, any
other is the path of a field: {'method': 'kl_cov', 'rollout.group_size': 16}. A
sweep is a list of settings.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import fcntl
import hashlib
import importlib
import itertools
import json
import os
import re
import subprocess
import sys
from typing import Any

import jax

from experiments import configuration
from rl_jax import metrics, overrides, serialization
from rl_jax.config import ExperimentConfig
from rl_jax.loop import Trainer

RESULTS = 'results.jsonl'
Setting = dict[str, Any]


def product(options: Mapping[str, Sequence[Any]]) -> list[Setting]:
  """Every combination; the last key varies fastest."""
  return [
    dict(zip(options, values, strict=True))
    for values in itertools.product(*options.values())
  ]


def zipped(options: Mapping[str, Sequence[Any]]) -> list[Setting]:
  """The i-th values of all keys together; all lists have one length."""
  lengths = {key: len(values) for key, values in options.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(f'lists of different lengths: {lengths}')
  return [
    dict(zip(options, values, strict=True))
    for values in zip(*options.values(), strict=True)
  ]


def crossed(*sweeps: list[Setting]) -> list[Setting]:
  """One setting of each sweep, merged; later keys win."""
  return [
    {key: value for part in parts for key, value in part.items()}
    for parts in itertools.product(*sweeps)
  ]


def chain(*sweeps: list[Setting]) -> list[Setting]:
  """One sweep after the other."""
  return list(itertools.chain(*sweeps))


@dataclasses.dataclass(frozen=True)
class Run:
  """One member of a sweep."""

  setting: Setting = dataclasses.field(hash=False)

  @property
  def config(self) -> ExperimentConfig:
    """The resolved configuration; raises ValueError for what does not fit."""
    fields = dict(self.setting)
    name = fields.pop('config')
    method = fields.pop('method', 'grpo')
    sets = [f'{path}={value}' for path, value in fields.items()]
    return configuration.build(name, method, sets)

  @property
  def name(self) -> str:
    """A directory name: the settings as far as they fit, and the hash."""
    words = '-'.join(
      f'{key.split(".")[-1]}={value}' for key, value in self.setting.items()
    )
    return re.sub(r'[^\w=.@-]+', '_', words)[:100] + '-' + self.digest

  @property
  def digest(self) -> str:
    """12 hexadecimal digits of the resolved configuration."""
    text = serialization.to_json(self.config)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def runs(sweep: list[Setting]) -> list[Run]:
  """The runs of a sweep; raises ValueError if two are the same."""
  found: dict[str, Run] = {}
  for setting in sweep:
    run = Run(setting)
    if run.digest in found:
      raise ValueError(
        f'{setting} and {found[run.digest].setting} are the same run'
      )
    found[run.digest] = run
  return list(found.values())


def shard(members: list[Run], text: str) -> Iterator[Run]:
  """The i-th of n parts for 'i/n', i from 0."""
  match = re.fullmatch(r'(\d+)/(\d+)', text)
  if not match or int(match[1]) >= int(match[2]):
    raise ValueError(f'shard = {text!r} is not i/n with 0 <= i < n')
  yield from members[int(match[1]) :: int(match[2])]


def load(paper: str) -> list[Run]:
  """The runs of a paper; raises ValueError naming the known papers."""
  known = configuration.names('experiments.papers')
  if paper not in known:
    raise ValueError(overrides.unknown_name('paper', paper, known))
  module = importlib.import_module(f'experiments.papers.{paper}')
  return runs(module.get_sweep())


def finished(workdir: str) -> set[str]:
  """Digests of the runs that results.jsonl holds."""
  path = os.path.join(workdir, RESULTS)
  if not os.path.exists(path):
    return set()
  return {row['digest'] for row in metrics.read_jsonl(path)}


def execute(run: Run, workdir: str) -> None:
  """Runs to the end and adds its line; continues what is there."""
  directory = os.path.join(workdir, run.name)
  trainer = Trainer(run.config, directory)
  trainer.run()
  rows = metrics.read_jsonl(os.path.join(directory, metrics.METRICS))
  row = {
    'digest': run.digest,
    'name': run.name,
    'setting': run.setting,
    'versions': {'python': sys.version.split()[0], 'jax': jax.__version__},
    'commit': commit(),
    'device': f'{jax.device_count()} x {jax.devices()[0].device_kind}',
    'tokens': trainer.counters.tokens,
    'seconds': sum(row.get('time/iteration_seconds', 0.0) for row in rows),
    'last': rows[-1],
  }
  # Several processes may end at once: one line is written under a lock.
  with open(os.path.join(workdir, RESULTS), 'a') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(json.dumps(metrics.to_json(row)) + '\n')


def commit() -> str:
  """The commit of the code, or 'unknown'."""
  found = subprocess.run(
    ['git', 'rev-parse', '--short', 'HEAD'],
    cwd=configuration.ROOT,
    capture_output=True,
    text=True,
  )
  return found.stdout.strip() or 'unknown'
