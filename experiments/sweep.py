"""Runs the sweep of experiments/papers/NAME/sweep.py, or writes jobs that do.

  python -m experiments.sweep --paper=NAME --workdir=DIR
  python -m experiments.sweep --paper=NAME --workdir=DIR --processes=4
  python -m experiments.sweep --paper=NAME --workdir=DIR --shard=0/8
  python -m experiments.sweep --paper=NAME --workdir=DIR --launch=slurm

Finished runs are skipped, interrupted ones are continued. Each finished run
adds a line to DIR/results.jsonl. The line of a failed run has the reason; it is
not run again until the line is removed.

--jitted compiles one program for runs that differ only in the seed, the
learning rate and float fields of the method, if the task verifies on the
device. With --by_stages it compiles one program per stage instead; through
JAX's compilation cache (JAX_COMPILATION_CACHE_DIR) methods share most of them,
which takes less time for many methods with few short runs. --launch prints a
SLURM array script or a Kubernetes JobSet with one task per run (or program);
nothing is submitted.
"""

import subprocess

from absl import flags

from experiments.flags import configuration
from experiments.sweeps import cluster_jobs
from experiments.sweeps import runs as sweep_runs

_PAPER = flags.DEFINE_string('paper', None, 'Name of the paper.', required=True)
_WORKDIR = flags.DEFINE_string('workdir', None, 'DIR.', required=True)
_SHARD = flags.DEFINE_string('shard', '0/1', 'i/n: every n-th run from i.')
_PROCESSES = flags.DEFINE_integer('processes', 1, 'Runs at the same time.')
_JITTED = flags.DEFINE_bool('jitted', False, 'One program for several runs.')
_BY_STAGES = flags.DEFINE_bool(
  'by_stages', False, 'With --jitted: one program per stage.'
)
_LAUNCH = flags.DEFINE_enum(
  'launch', '', ['', 'slurm', 'jobset'], 'Job to print.'
)
_IMAGE = flags.DEFINE_string('image', 'rl_jax', 'Container image of a JobSet.')


def main(argv):
  """Runs, spawns or prints."""
  del argv
  paper, workdir = _PAPER.value, _WORKDIR.value
  flags_ = ['--jitted'] if _JITTED.value else []
  flags_ += ['--by_stages'] if _BY_STAGES.value else []
  parts = sweep_runs.programs(sweep_runs.load(paper), _JITTED.value)
  job = (paper, workdir, len(parts))
  if _LAUNCH.value == 'slurm':
    print(cluster_jobs.slurm_script(*job, *flags_), end='')
  elif _LAUNCH.value == 'jobset':
    print(cluster_jobs.jobset(*job, _IMAGE.value, *flags_))
  elif _PROCESSES.value > 1:
    if _SHARD.value != '0/1':
      raise ValueError('give --processes or --shard, not both')
    processes = [
      subprocess.Popen(
        cluster_jobs.command(paper, workdir, f'{i}/{_PROCESSES.value}', *flags_)
      )
      for i in range(_PROCESSES.value)
    ]
    failed = [p.args[-1] for p in processes if p.wait()]
    if failed:
      raise ValueError(f'these parts failed: {", ".join(failed)}')
  else:
    mine = sweep_runs.shard(parts, _SHARD.value)
    sweep_runs.execute_all(mine, workdir, _JITTED.value, _BY_STAGES.value)


if __name__ == '__main__':
  configuration.run(main)
