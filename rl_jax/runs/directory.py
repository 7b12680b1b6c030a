"""The work directory of a run: its configuration and its newest step."""

import json
import os

from absl import logging
from etils import epath

from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.records.checkpoints import files
from rl_jax.records.checkpoints.files import committed_steps
from rl_jax.runtime import processes

CONFIG_FILE = 'experiment.json'  # HF directories have a config.json
# Where a run is continued with other values: its length, its machine, its logs.
FREE = (
  'iterations:',
  'mesh.',
  'checkpoint.',
  'model.remat:',
  'model.attention:',
  'rollout.slots:',
  'update.microbatch_prompts:',
  'update.pack:',
  'evaluation.batch_prompts:',
  'verifier.num_workers:',
  'verifier.memory_limit_bytes:',
  'guards.log_rollouts:',
)


def check(config: ExperimentConfig, workdir: str) -> None:
  """Raises ValueError if the directory holds the run of another configuration.

  Or if no checkpoint could be saved there.

  Fields of FREE may change: the rest of the run is the same within tier E1, and
  checkpoints restore on any mesh. What has changed is logged.
  """
  files.check_directory(workdir)
  path = os.path.join(workdir, CONFIG_FILE)
  if not os.path.exists(path):
    if committed_steps(epath.Path(workdir) / 'checkpoints'):
      raise ValueError(
        f'{workdir} has checkpoints but no {CONFIG_FILE}: it is unknown '
        'which run they continue. Use another --workdir, or remove them.'
      )
    return
  try:
    with open(path) as f:
      saved = serialization.from_json(f.read())
  except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as error:
    raise ValueError(
      f'{path} is damaged ({type(error).__name__}: {error}). Remove it if the '
      'given configuration is that of the run.'
    ) from error
  # Through JSON once, so that only what is written is compared.
  given = serialization.from_json(serialization.to_json(config))
  changes = serialization.difference(saved, given)
  lines = [line for line in changes if not line.startswith(FREE)]
  if lines:
    raise ValueError(
      f'{path} differs from the given configuration (saved -> given):\n  '
      + '\n  '.join(lines)
      + '\nUse another --workdir, or give the saved values.'
    )
  logging.info('continuing the run in %s', workdir)
  for line in changes:
    logging.warning('continuing with another %s', line)


def iterations_done(workdir: str) -> int:
  """The newest committed checkpoint of a work directory, 0 without one."""
  steps = committed_steps(epath.Path(workdir) / 'checkpoints')
  return steps[-1] if steps else 0


def write_config(config: ExperimentConfig, workdir: str) -> None:
  """Writes experiment.json if there is none.

  Called when everything else has been checked, so that a command that
  fails a check leaves no file that blocks the corrected one. Of several
  processes process 0 writes it.
  """
  processes.on_main(lambda: _write_config(config, workdir))


def _write_config(config, workdir):
  os.makedirs(workdir, exist_ok=True)
  path = os.path.join(workdir, CONFIG_FILE)
  if os.path.exists(path):
    return
  temporary = path + '.tmp'
  with open(temporary, 'w') as f:
    f.write(serialization.to_json(config))
    f.flush()
    os.fsync(f.fileno())  # before it has its name: it is never empty
  os.replace(temporary, path)
