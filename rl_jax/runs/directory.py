"""The work directory of a run: its configuration and its newest step."""

from collections.abc import Sequence
import dataclasses
import json
import os
import stat
from typing import Any

from absl import logging
from etils import epath

from rl_jax import overrides, serialization
from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.former_names import REMOVED
from rl_jax.records.checkpoints import files
from rl_jax.records.checkpoints.files import committed_steps
from rl_jax.runs import fingerprints
from rl_jax.runtime import processes
from rl_jax.runtime.writer import Writer, sole_writer

CONFIG_FILE = 'experiment.json'  # HF directories have a config.json
# What changes no number of the training: length, machine, logs, limits. A time
# limit of verifiers does so only where it is reached.
FREE = (
  'iterations:',
  'mesh.',
  'checkpoint.',
  'diagnostics.',
  'evaluation.',
  'guards.',
  'model.remat:',
  'model.attention:',
  'rollout.cache_tokens:',
  'rollout.host_cache_tokens:',
  'rollout.parts:',
  'rollout.slots:',
  'stopping.',
  'tracking.',
  'update.microbatch_prompts:',
  'update.microbatch_rows:',
  'update.pack:',
  'verifier.num_workers:',
  'verifier.timeout_seconds:',
  'verifier.memory_limit_bytes:',
  'verifier.journal_sync:',
  'verifier.limits',
  'verifier.rates',
)


@dataclasses.dataclass(frozen=True)
class Changes:
  """The differences of a start from its directory that are on purpose.

  lines: 'path: old -> new', those that --allow_change names.
  files: fingerprints of data and model now, on process 0.
  """

  lines: tuple[str, ...] = ()
  files: dict[str, Any] = dataclasses.field(default_factory=dict)


def check(
  config: ExperimentConfig, workdir: str, allowed: Sequence[str] = ()
) -> Changes:
  """Raises ValueError if the directory holds the run of another configuration.

  Or if no checkpoint could be saved there, or a model is there and no run.

  Or of other data or another model: of the same fields, but with another
  content. Files may move.

  Fields of FREE may change: the rest of the run is the same within tier E1, and
  checkpoints restore on any mesh. What has changed is logged. allowed: dotted
  paths of other fields (and all below them) that are changed on purpose.
  """
  now: dict[str, Any] = {}

  def main():
    files.check_directory(workdir)
    _check_kinds(workdir)
    recorded = fingerprints.read(workdir)
    now.update(fingerprints.of(config, recorded))
    paths = [_by_index(config, path) for path in allowed]
    return _check(config, workdir, paths, (recorded, now))

  # Process 0 reads: other hosts may have an older state of a shared disk.
  return Changes(lines=tuple(processes.on_main(main)), files=now)


def _check_kinds(workdir):
  """Raises ValueError for a pipe: opening it would wait for ever."""
  if not os.path.isdir(workdir):
    return
  for name in sorted(os.listdir(workdir)):
    path = os.path.join(workdir, name)
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
      raise ValueError(f'{path} is a pipe, not a file: remove it')


def _check(config, workdir, allowed, prints):
  path = os.path.join(workdir, CONFIG_FILE)
  if not os.path.exists(path):
    if committed_steps(epath.Path(workdir) / 'checkpoints'):
      raise ValueError(
        f'{workdir} has checkpoints but no {CONFIG_FILE}: it is unknown '
        'which run they continue. Use another --workdir, or remove them.'
      )
    _check_no_model(workdir)
    return []
  try:
    saved = serialization.read(path, serialization.classes_of(config))
  except ValueError as error:
    if 'is damaged' not in str(error):
      raise
    raise ValueError(
      f'{error}. Remove it if the given configuration is that of the run.'
    ) from error
  if not isinstance(saved, ExperimentConfig):
    raise ValueError(f'{path} is damaged: it holds no configuration of a run')
  _history(path)
  with open(path, encoding='utf-8') as f:
    text = f.read()
  changes = _differences(saved, config) + _turns_in_step(text, config)
  code = serialization.changed_files(text)
  edited = code + fingerprints.changes(*prints)
  named = [
    line
    for line in changes + edited
    if _is_named(line, allowed) or _has_moved(line, prints)
  ]
  changed = [x for x in changes if x not in named and not x.startswith(FREE)]
  edited = [x for x in edited if x not in named]
  if changed or edited:
    raise ValueError(_refusal(path, changed, edited))
  logging.info('continuing the run in %s', workdir)
  for line in dict.fromkeys(changes + named):
    logging.warning('continuing with another %s', line)
  return named


def _check_no_model(workdir):
  """Raises ValueError for a model, which the files of a run would hide."""
  names = os.listdir(workdir) if os.path.isdir(workdir) else []
  for name in sorted(names):
    if name in ('model.json', 'config.json') or name.endswith('.safetensors'):
      raise ValueError(
        f'{workdir} holds a model ({name}): give another --workdir'
      )


def _refusal(path, changed, edited):
  """The text of an error about fields and files that differ."""
  lines = []
  if changed:
    lines += [f'{path} differs from the given configuration (saved -> given):']
    lines += [f'  {line}' for line in changed]
  if edited:
    lines += [f'files of the run in {path} have changed (at the start -> now):']
    lines += [f'  {line}' for line in edited]
  keys = (line.split(': ', 1)[0].partition('/')[0] for line in changed + edited)
  flags = ' '.join(f'--allow_change={key}' for key in dict.fromkeys(keys))
  return '\n'.join(lines) + (
    '\nUse another --workdir, or what the run began with; or change the rest '
    f'of the run on purpose: {flags}'
  )


def _has_moved(line, prints):
  """Returns whether a field names another place that has the same content."""
  field = line.split(': ', 1)[0]
  is_place = field == 'model.path' or field.endswith('.sources')
  return is_place and fingerprints.same(field, *prints)


def _differences(saved, given):
  """Lines 'path: saved -> given'; also of the step at which a schedule ends."""
  # Through JSON once, so that only what is written is compared.
  text, classes = serialization.to_json(given), serialization.classes_of(given)
  given = serialization.from_json(text, classes)
  saved, given = (
    dataclasses.replace(x, optimizer=optimizer_of(x)) for x in (saved, given)
  )
  return serialization.difference(saved, given)


def _turns_in_step(text, config):
  """The change of a run whose rows of episodes waited for each other.

  What they draw next is equal within tier E2, but with rollout.staleness their
  episodes now start early.
  """
  recorded = json.loads(text)['rollout'].get('episodes')
  if config.rollout.turns is None or recorded != 'lockstep':
    return []
  return ["rollout.episodes: 'lockstep' -> 'slots'"]


def _is_named(line, allowed):
  field = line.split(': ', 1)[0]
  return any(
    field == path or field.startswith((f'{path}.', f'{path}/'))
    for path in allowed
  )


def _by_index(config, path):
  """The path with pieces by index, as `difference` writes them.

  Raises ValueError naming the nearest field for one that does not exist.
  """
  node, keys = config, []
  for key in path.split('.'):
    if isinstance(node, tuple):
      names = [type(piece).__name__ for piece in node]
      key = str(names.index(key)) if key in names else key
      node = node[int(key)] if key.isdigit() and int(key) < len(node) else None
    elif dataclasses.is_dataclass(node):
      fields = [f.name for f in dataclasses.fields(node)]
      gone = (type(node).__name__, key) in REMOVED
      if not gone and key not in fields:
        text = overrides.unknown_name(f'field in {path!r}', key, fields)
        raise ValueError(f'--allow_change: {text}')
      node = None if gone else getattr(node, key)
    elif isinstance(node, dict):
      node = node.get(key)
    keys.append(key)
  return '.'.join(keys)


def saved_config(workdir: str) -> ExperimentConfig:
  """The configuration of a work directory.

  Objects of classes of the user that are not imported are stand-ins: what needs
  their code says what to import (serialization.StandIn). A file of the user
  that has changed since is a warning. Raises ValueError naming the file if it
  is damaged.
  """
  path = os.path.join(workdir, CONFIG_FILE)
  config = serialization.read(path, stand_ins=True)
  if not isinstance(config, ExperimentConfig):
    raise ValueError(f'{path} is damaged: it holds no ExperimentConfig')
  with open(path, encoding='utf-8') as f:
    for line in serialization.changed_files(f.read(), imported=True):
      logging.warning('changed since the run in %s began: %s', workdir, line)
  return config


def run_of(checkpoint: str) -> ExperimentConfig | None:
  """The configuration of a work directory; None: it is a model."""
  if os.path.exists(os.path.join(checkpoint, CONFIG_FILE)):
    return saved_config(checkpoint)
  return None


def base_of(checkpoint: str) -> str:
  """The base model of adapters, which a run began with, if it had one."""
  run = run_of(checkpoint)
  path = None if run is None else run.model.path
  return checkpoint if path is None else path


def iterations_done(workdir: str) -> int:
  """The newest committed checkpoint of a work directory, 0 without one."""
  steps = committed_steps(epath.Path(workdir) / 'checkpoints')
  return steps[-1] if steps else 0


def write_config(
  config: ExperimentConfig,
  workdir: str,
  changes: Changes | None = None,
  iteration: int = 0,
  writer: Writer | None = None,
) -> None:
  """Writes experiment.json if there is none, or if the run was changed.

  And the fingerprints of its files.

  Called when everything else has been checked, so that a command that
  fails a check leaves no file that blocks the corrected one. Of several
  processes process 0 writes it.

  iteration: the last one with the old values; `history` in the file keeps it
  with the changes. writer: the right to write there, by default not shared.
  """
  path = os.path.join(workdir, CONFIG_FILE)
  writer = writer or sole_writer()

  def write():
    saved = _history(path)
    # Of a run that continues from an older checkpoint than before.
    known = [{**x, 'iteration': min(x['iteration'], iteration)} for x in saved]
    if changes is not None and changes.lines:
      known.append({'iteration': iteration, 'changes': list(changes.lines)})
    if not os.path.exists(path) or known != saved:
      os.makedirs(workdir, exist_ok=True)
      _write(writer, path, serialization.with_history(config, known))
    if changes is not None and changes.files != fingerprints.read(workdir):
      prints = os.path.join(workdir, fingerprints.FILE)
      _write(writer, prints, fingerprints.text(changes.files))

  processes.on_main(write)


def change_metrics(workdir: str) -> dict[int, dict[str, float]]:
  """{iteration: metrics of its row} of iterations that begin with other values.

  changed/PATH is the new value of a field, or 1 if that is not a number.
  """
  path = os.path.join(workdir, CONFIG_FILE)
  found: dict[int, dict[str, float]] = {}
  for entry in processes.on_main(lambda: _history(path)):
    row = found.setdefault(entry['iteration'] + 1, {})
    for line in entry['changes']:
      field, _, values = line.partition(': ')
      row[f'changed/{field}'] = _number(values.rpartition(' -> ')[2])
  return found


def _history(path) -> list[dict[str, Any]]:
  if not os.path.exists(path):
    return []
  with open(path, encoding='utf-8') as file:
    text = file.read()
  try:
    return serialization.history(text)
  except ValueError as error:
    raise ValueError(f'{path} is damaged: {error}') from error


def _number(text):
  try:
    return float(text)
  except ValueError:
    return 1.0


def _write(writer, path, text):
  with writer.replacing(path) as file:
    file.write(text.encode())
