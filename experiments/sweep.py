"""Runs the sweep of experiments/papers/NAME.py, or writes jobs that do.

  python -m experiments.sweep --paper=NAME --workdir=DIR
  python -m experiments.sweep --paper=NAME --workdir=DIR --processes=4
  python -m experiments.sweep --paper=NAME --workdir=DIR --shard=0/8
  python -m experiments.sweep --paper=NAME --workdir=DIR --launch=slurm

Finished runs are skipped, interrupted ones continued. Each finished run adds a
line to DIR/results.jsonl. --launch prints a SLURM array script or a Kubernetes
JobSet with one task a run; nothing is contacted.
"""

import os
import subprocess

from absl import flags, logging
import jax

from experiments import cluster_jobs, configuration, sweeps
from rl_jax.checkpoint import quiet_orbax

_PAPER = flags.DEFINE_string('paper', None, 'Module.', required=True)
_WORKDIR = flags.DEFINE_string('workdir', None, 'Runs.', required=True)
_SHARD = flags.DEFINE_string('shard', '0/1', 'i/n: every n-th run from i.')
_PROCESSES = flags.DEFINE_integer('processes', 1, 'Runs at the same time.')
_LAUNCH = flags.DEFINE_enum('launch', '', ['', 'slurm', 'jobset'], 'Print.')
_IMAGE = flags.DEFINE_string('image', 'rl_jax', 'Container of a JobSet.')


def main(argv):
  """Runs, spawns or prints."""
  del argv
  quiet_orbax()
  paper, workdir = _PAPER.value, _WORKDIR.value
  members = sweeps.load(paper)
  if _LAUNCH.value == 'slurm':
    print(cluster_jobs.slurm_script(paper, workdir, len(members)), end='')
    return
  if _LAUNCH.value == 'jobset':
    print(cluster_jobs.jobset(paper, workdir, len(members), _IMAGE.value))
    return
  os.makedirs(workdir, exist_ok=True)
  if _PROCESSES.value > 1:
    if _SHARD.value != '0/1':
      raise ValueError('give --processes or --shard, not both')
    parts = [
      subprocess.Popen(
        cluster_jobs.command(paper, workdir, f'{i}/{_PROCESSES.value}')
      )
      for i in range(_PROCESSES.value)
    ]
    failed = [part.args[-1] for part in parts if part.wait()]
    if failed:
      raise ValueError(f'these parts did not end well: {", ".join(failed)}')
    return
  for run in sweeps.shard(members, _SHARD.value):
    if run.digest in sweeps.finished(workdir):
      logging.info('%s is finished', run.name)
      continue
    sweeps.execute(run, workdir)
    jax.clear_caches()  # hundreds of runs in one process would keep programs


if __name__ == '__main__':
  configuration.run(main)
