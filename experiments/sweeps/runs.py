"""Sets of runs: products, zips and chains of settings.

A setting is a dict {key: value}; the keys config and method choose modules, add
lists pieces to append, any other is the path of a field: {'method': 'kl_cov',
'rollout.group_size': 16}. A sweep is a list of settings.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import fcntl
import functools
import importlib
import itertools
import json
import os
import re
import statistics
from typing import Any

from absl import logging
import jax

from experiments.flags import configuration
from experiments.reports import typed as typed_lib
from experiments.sweeps import courses, held
from experiments.sweeps.environment import commit, environment
from rl_jax import config as config_lib
from rl_jax import overrides, serialization
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.records import metrics
from rl_jax.runs import directory as directory_lib
from rl_jax.runs import guards, lock
from rl_jax.runs.loop import Trainer
from rl_jax.runs.scanned import program

RESULTS = 'results.jsonl'
Setting = dict[str, Any]


def product(options: Mapping[str, Sequence[Any]]) -> list[Setting]:
  """Every combination; the last key varies fastest."""
  return [
    dict(zip(options, values, strict=True))
    for values in itertools.product(*options.values())
  ]


def zipped(options: Mapping[str, Sequence[Any]]) -> list[Setting]:
  """The i-th values of all keys together; lists have equal lengths."""
  lengths = {key: len(values) for key, values in options.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(f'lists of different lengths: {lengths}')
  return [
    dict(zip(options, values, strict=True))
    for values in zip(*options.values(), strict=True)
  ]


def sampling_methods() -> list[str]:
  """The methods of configs/methods that learn from samples, not from data."""
  return [
    name
    for name in configuration.names('configs.methods')
    if not any(
      piece.from_data for _, piece in configuration.load_method(name).pieces()
    )
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


def value_head(method: Method) -> Setting:
  """The fields of the model for what the method reads of a value head."""
  if not method.reads_values:
    return {}
  outputs = method.num_values
  more = {'model.num_values': outputs} if outputs > 1 else {}
  return {'model.value_head': True, **more}


def equal_conditions(
  config: str, methods: Sequence[str], common: Setting, seeds: int
) -> list[Setting]:
  """Methods x seeds without evaluation and with one checkpoint, at the end.

  Methods with a critic get a value head.
  """
  always = {'config': config, 'evaluation.every': 0, 'checkpoint.every': 10**9}
  settings = []
  for name in methods:
    head = value_head(configuration.load_method(name))
    settings.append({**always, 'method': name, **common, **head})
  return crossed(settings, product({'seed': range(seeds)}))


@dataclasses.dataclass(frozen=True)
class Run:
  """One member of a sweep."""

  setting: Setting = dataclasses.field(hash=False)

  @functools.cached_property
  def config(self) -> ExperimentConfig:
    """The resolved configuration; raises ValueError for unknown names."""
    return configuration.build(*self._words())

  def _words(self) -> tuple[str, str, list[str], list[str]]:
    """(config, method, sets, adds), as on the command line of train."""
    fields = dict(self.setting)
    name, method = fields.pop('config'), fields.pop('method', 'grpo')
    adds = fields.pop('add', [])
    sets = [f'{path}={value}' for path, value in fields.items()]
    return name, method, sets, adds

  @property
  def typed(self) -> typed_lib.Typed:
    """The callback that keeps these words beside the run."""
    return typed_lib.Typed(*self._words())

  @property
  def name(self) -> str:
    """A directory name: the settings, cut at 100 characters, and the digest."""
    words = '-'.join(
      f'{key.split(".")[-1]}={value}'
      for key, value in self.setting.items()
      if key != 'add'
    )
    return re.sub(r'[^\w=.@-]+', '_', words)[:100] + '-' + self.digest

  @functools.cached_property
  def digest(self) -> str:
    """Digest of the resolved configuration; see `serialization.digest`."""
    return serialization.digest(self.config)


def runs(sweep: list[Setting]) -> list[Run]:
  """The runs of a sweep; raises ValueError if two are the same."""
  found: dict[str, Run] = {}
  for setting in sweep:
    run = Run(setting)
    if run.digest in found:
      raise ValueError(
        f'{setting} and {found[run.digest].setting} are the same run: each '
        'configuration may occur once'
      )
    found[run.digest] = run
  return list(found.values())


def shard(members: list[Any], text: str) -> Iterator[Any]:
  """The i-th of n parts for 'i/n', i from 0."""
  match = re.fullmatch(r'(\d+)/(\d+)', text)
  if not match or int(match[1]) >= int(match[2]):
    raise ValueError(f'shard = {text!r} is not i/n with 0 <= i < n')
  yield from members[int(match[1]) :: int(match[2])]


def papers() -> list[str]:
  """Names of the folders in experiments/papers that have a sweep, sorted."""
  folder = configuration.ROOT / 'experiments' / 'papers'
  return sorted(path.parent.name for path in folder.glob('*/sweep.py'))


@functools.cache  # a thousand digests take seconds
def load(paper: str) -> list[Run]:
  """The runs of a paper; raises ValueError naming the known papers."""
  known = papers()
  if paper not in known:
    raise ValueError(overrides.unknown_name('paper', paper, known))
  module = importlib.import_module(f'experiments.papers.{paper}.sweep')
  return runs(module.get_sweep())


def results(workdir: str) -> list[dict[str, Any]]:
  """The lines of results.jsonl; none if there is no such file."""
  return read_lines(os.path.join(workdir, RESULTS))


def read_lines(path: str) -> list[dict[str, Any]]:
  """The lines of a file as results.jsonl; none if there is no such file."""
  rows = metrics.read_jsonl(path) if os.path.exists(path) else []
  for number, row in enumerate(rows, start=1):
    if not (isinstance(row, dict) and 'digest' in row):
      raise ValueError(f'{path}:{number} is not the line of a run')
  return rows


def finished(workdir: str) -> set[str]:
  """Digests of the runs in results.jsonl, including failed ones."""
  return {row['digest'] for row in results(workdir)}


def check_clashes(members: Iterable[Run], workdir: str) -> None:
  """Raises ValueError if a setting has a line of another configuration.

  A file of the configuration, a default or the method has changed since: two
  rows of a table would have one name.
  """
  known = {json.dumps(r['setting']): r['digest'] for r in results(workdir)}
  for run in members:
    digest = known.get(json.dumps(run.setting), run.digest)
    if digest != run.digest:
      raise ValueError(
        f'{os.path.join(workdir, RESULTS)} has {run.setting} with another '
        f'configuration (digest {digest}, now {run.digest}): its files or '
        'defaults have changed. Use another --workdir, or remove the line.'
      )


def states(members: Iterable[Run], workdir: str) -> Iterator[str]:
  """One line for each run: its directory and how far it is."""
  lines = {row['digest']: row for row in results(workdir)}
  for run in members:
    done = directory_lib.iterations_done(os.path.join(workdir, run.name))
    state = f'{done} of {run.config.iterations} iterations'
    if run.digest in lines:
      why = lines[run.digest].get('failed')
      state = f'failed: {why}' if why else 'finished'
    else:
      try:
        config_lib.validate(run.config)
      except ValueError as error:
        state = f'will fail: {error}'
    yield f'{run.name}: {state}'


def progress(members: Sequence[Run], workdir: str) -> str:
  """Returns how many runs are finished and how many failed; a line for each
  reason.
  """
  wanted = {run.digest for run in members}
  lines = [row for row in results(workdir) if row['digest'] in wanted]
  reasons = collections.Counter(r['failed'] for r in lines if 'failed' in r)
  failed = reasons.total()
  text = (
    f'{len(lines) - failed} of {len(members)} runs are finished, {failed} '
    f'failed: {os.path.join(workdir, RESULTS)}'
  )
  why = [f'{count} failed: {why}' for why, count in reasons.items()]
  return '\n'.join([text, *why])


def programs(members: Iterable[Run], jitted: bool) -> list[list[Run]]:
  """Runs grouped by the program that executes them; others form single groups.

  Groups come first: they finish most runs per unit of time.
  """
  found: dict[Any, list[Run]] = {}
  alone = []
  for run in members:
    if jitted and program.refusal(run.config) is None:
      found.setdefault(program.program_key(run.config), []).append(run)
    else:
      alone.append([run])
  return [*found.values(), *alone]


def execute_all(
  parts: Iterable[list[Run]],
  workdir: str,
  jitted: bool = False,
  by_stages: bool = False,
) -> None:
  """Executes unfinished runs; the line of a failed run has the reason.

  by_stages: one program per stage for jitted runs, which methods share.
  A run that another process executes has no line of this one.

  Raises ValueError, before any run, as `check_clashes`.
  """
  parts = list(parts)
  commit()  # asked now, before others may commit
  check_clashes(itertools.chain(*parts), workdir)
  os.makedirs(workdir, exist_ok=True)
  if os.path.exists(os.path.join(workdir, RESULTS)):
    add_lines(workdir, [])  # ends a line that was edited by hand
  for part in parts:
    done = finished(workdir)
    waiting = [run for run in part if run.digest not in done]
    if not waiting:
      logging.info('%s: finished', part[0].name)
      continue
    try:
      if jitted and program.refusal(waiting[0].config) is None:
        execute_jitted(waiting, workdir, by_stages)
      else:
        execute(waiting[0], workdir)
    except lock.HeldError as error:
      logging.warning('left to another process: %s', error)
    except (ValueError, guards.StopRunError) as error:
      _add_failed(waiting, workdir, error)
    jax.clear_caches()  # else programs of hundreds of runs accumulate


def execute(run: Run, workdir: str) -> None:
  """Runs or continues to the end and adds the line of the run."""
  directory = os.path.join(workdir, run.name)
  trainer = Trainer(run.config, directory, callbacks=[run.typed])
  trainer.run()
  rows = metrics.read_jsonl(os.path.join(directory, metrics.METRICS))
  add_lines(workdir, [_line(run) | _numbers(run, rows)])


def execute_jitted(
  together: list[Run], workdir: str, by_stages: bool = False
) -> None:
  """Executes runs that share a program and writes their files.

  There are no checkpoints. The work directories are held from before the
  program is compiled; runs that another process holds are left to it, and those
  that one has finished meanwhile are not run again.

  Raises:
    lock.HeldError: other processes hold all of them.
  """
  folder = functools.partial(os.path.join, workdir)
  with held.those_free([folder(run.name) for run in together]) as free:
    done = finished(workdir)
    mine = [
      run
      for run in together
      if run.digest not in done and folder(run.name) in free
    ]
    try:
      if mine:
        _execute_held(mine, workdir, by_stages, free)
    except (ValueError, guards.StopRunError) as error:
      _add_failed(mine, workdir, error)  # not those of others


def _execute_held(together, workdir, by_stages, writers):
  configs = [run.config for run in together]
  whole = program.WholeRuns(configs)
  found = (whole.run_by_stages if by_stages else whole.run)()[0]
  lines = []
  for i, run in enumerate(together):
    directory = os.path.join(workdir, run.name)
    directory_lib.check(configs[i], directory)
    directory_lib.write_config(configs[i], directory, writer=writers[directory])
    run.typed.write(directory)
    writer = metrics.MetricsWriter(
      directory, trackers=(), writer=writers[directory]
    )
    writer.truncate_to({})
    rows = program.rows(found, i, configs[i].evaluation.every)
    rows = [writer.log(row.pop('step'), row) for row in rows]
    writer.close()
    line = _line(run) | _numbers(run, rows) | {'jitted': len(together)}
    if why := guards.first_failure(configs[i].guards, rows):
      line['failed'] = why
    lines.append(line)
  add_lines(workdir, lines)


def _add_failed(failed, workdir, error):
  logging.warning('%s failed: %s', failed[0].name, error)
  why = (str(error) or type(error).__name__).splitlines()[0]
  add_lines(workdir, [_line(run) | {'failed': why} for run in failed])


def _line(run: Run) -> dict[str, Any]:
  """Fields of the line of a run that do not depend on its results."""
  return {
    'digest': run.digest,
    'name': run.name,
    'setting': run.setting,
    **environment(),
  }


def _numbers(run: Run, rows: list[dict[str, Any]]) -> dict[str, Any]:
  """Fields of the line of a run that ended."""
  name = 'time/iteration_seconds'  # not of an evaluation before all of them
  seconds = [row[name] for row in rows if name in row]
  return {
    'tokens': rows[-1]['rollout/tokens_total'],
    'seconds': sum(seconds),
    'iteration_seconds': statistics.median(seconds),  # without compilation
    'last': rows[-1] | courses.numbers(rows, run.config.iterations),
    'held_out': courses.held_out(rows),
  }


def add_lines(workdir: str, rows: list[dict[str, Any]]) -> None:
  """Appends lines under a lock, as several processes may write at once."""
  text = ''.join(json.dumps(metrics.to_json(row)) + '\n' for row in rows)
  with open(os.path.join(workdir, RESULTS), 'ab+') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    _end_line(file)
    file.write(text.encode())


def _end_line(file):
  """Ends the last line, which an editor may not; removes one that was cut."""
  file.seek(0)
  last = file.read().rpartition(b'\n')[2]
  try:
    json.loads(last)
  except ValueError:  # by a full disk, or there is none
    file.truncate(file.tell() - len(last))
  else:
    file.write(b'\n')
