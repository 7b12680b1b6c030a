"""Runs a grid of configurations, or the sweep of a paper, or writes their jobs.

  python -m experiments.sweep --config=configs/worlds/bandit.py
    --method=grpo,dapo --set=optimizer.learning_rate=1e-3,5e-3 --seeds=5
    --workdir=DIR
  python -m experiments.sweep --paper=NAME --workdir=DIR
  python -m experiments.sweep --paper=NAME --workdir=DIR --processes=4
  python -m experiments.sweep --paper=NAME --workdir=DIR --shard=0/8
  python -m experiments.sweep --paper=NAME --workdir=DIR --launch=slurm
  python -m experiments.sweep --paper=NAME --scale=paper --rows=clip_cov,kl_cov
    --seeds=3 --workdir=DIR
  python -m experiments.sweep --paper=NAME --scale=tiny --workdir=DIR
  python -m experiments.sweep --paper=verl_baselines --scale=small --workdir=DIR

--config, --method and each --set take values separated by commas; a run is made
of every combination, with every seed. Commas in brackets or quotes separate
nothing: (1,2),(3,4) are two values. --add is the same for all runs. --paper
runs experiments/papers/NAME/sweep.py, and with --scale the rows of
experiments/papers/NAME/recipe.py: paper, as published, on the data that
`experiments.data` fetches; tiny, two iterations of a tiny model on rows written
by hand, to try the recipe; small, the schedule of a row with a small model on
other data, which recipes may have for one machine. --dry_run prints the runs
and their state.

Finished runs are skipped, interrupted ones are continued. Each finished run
adds a line to DIR/results.jsonl. The line of a failed run has the reason; it is
not run again until the line is removed. A run whose work directory another
process holds is left to it, so that two sweeps in one DIR share the work; the
lock.json of a process that died on another host is to be removed by hand.
`table` and `report` read DIR. If no run is finished at the end, the exit code
is 1 (but not with --shard).

--jitted compiles one program for runs that differ only in the seed, the
learning rate and float fields of the method, if the task verifies on the
device. With --by_stages it compiles one program per stage instead; through
JAX's compilation cache (JAX_COMPILATION_CACHE_DIR) methods share most of them,
which takes less time for many methods with few short runs. --launch prints a
SLURM array script or a Kubernetes JobSet with one task per run (or program);
nothing is submitted.
"""

import os
import sys

from absl import app, flags

from experiments.flags import configuration
from experiments.sweeps import children, cluster_jobs, grid, recipes
from experiments.sweeps import runs as sweep_runs
from rl_jax.runtime import stop_signal

_PAPER = flags.DEFINE_string('paper', '', 'Name of the paper.')
_CONFIG = flags.DEFINE_string('config', '', 'configs/NAME.py, or several.')
_METHOD = flags.DEFINE_string('method', 'grpo', 'One, several, or all.')
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE,VALUE,...; repeated.')
_ADD = flags.DEFINE_multi_string('add', [], 'PATH=Class(field=literal).')
_SCALE = flags.DEFINE_enum(
  'scale', '', ['', *recipes.SCALES], "Of --paper: its recipe's rows, so large."
)
_ROWS = flags.DEFINE_list('rows', [], 'Rows of the recipe. Default: all.')
_SEEDS = flags.DEFINE_integer('seeds', None, 'Seeds 0, 1, ... of each cell.')
_DRY = flags.DEFINE_bool('dry_run', False, 'Print the runs and their state.')
_WORKDIR = flags.DEFINE_string('workdir', None, 'DIR.', required=True)
_SHARD = flags.DEFINE_string('shard', '0/1', 'i/n: every n-th run from i.')
_PROCESSES = flags.DEFINE_integer(
  'processes', 1, 'Runs at the same time.', lower_bound=1
)
_JITTED = flags.DEFINE_bool('jitted', False, 'One program for several runs.')
_BY_STAGES = flags.DEFINE_bool(
  'by_stages', False, 'With --jitted: one program per stage.'
)
_LAUNCH = flags.DEFINE_enum(
  'launch', '', ['', 'slurm', 'jobset'], 'Job to print.'
)
_IMAGE = flags.DEFINE_string('image', 'rl_jax', 'Container image of a JobSet.')
SAVED = {  # exit codes of what continues with the same command
  stop_signal.SIGTERM_EXIT_CODE,
  stop_signal.SIGINT_EXIT_CODE,
  stop_signal.SIGHUP_EXIT_CODE,
}


def source() -> tuple[list[sweep_runs.Run], tuple[str, ...]]:
  """The runs, and the flags that describe them."""
  grid_flags = [f'--config={_CONFIG.value}'] if _CONFIG.value else []
  grid_flags += [f'--method={_METHOD.value}'] if _METHOD.present else []
  grid_flags += [f'--set={text}' for text in _SET.value]
  grid_flags += [f'--add={text}' for text in _ADD.value]
  seeds = [f'--seeds={_SEEDS.value}'] if _SEEDS.present else []
  if _ROWS.value and not _SCALE.value:
    raise ValueError('--rows are of a recipe: give --paper and --scale')
  if _SCALE.value:
    if grid_flags or not _PAPER.value:
      raise ValueError('--scale is of --paper: give its name, and no --config')
    words = [f'--paper={_PAPER.value}', f'--scale={_SCALE.value}']
    words += [f'--rows={",".join(_ROWS.value)}'] if _ROWS.value else []
    members = recipes.members(
      _PAPER.value, _SCALE.value, _ROWS.value, _SEEDS.value, _WORKDIR.value
    )
    return members, (*words, *seeds)
  grid_flags += seeds
  if bool(_PAPER.value) == bool(grid_flags):
    raise ValueError('give either --paper, or --config with --method and --set')
  imports = [f'--import={text}' for text in flags.FLAGS['import'].value or ()]
  if _PAPER.value:
    return sweep_runs.load(_PAPER.value), (f'--paper={_PAPER.value}', *imports)
  if not _CONFIG.value:
    raise ValueError('--config is missing: which configuration is to be run?')
  if '.json' in _CONFIG.value and not _METHOD.present:
    raise ValueError(
      f'--method is missing: which methods instead of that of {_CONFIG.value}?'
    )
  settings = grid.settings(
    _CONFIG.value, _METHOD.value, _SET.value, _ADD.value, _SEEDS.value
  )
  return sweep_runs.runs(settings), (*grid_flags, *imports)


def check_any(members: list[sweep_runs.Run], workdir: str) -> None:
  """Exits with 1 if no run is finished."""
  rows = sweep_runs.results(workdir)
  done = {row['digest'] for row in rows if 'failed' not in row}
  if not any(run.digest in done for run in members):
    sys.exit(1)


def main(argv):
  """Runs, spawns or prints."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  if _BY_STAGES.value and not _JITTED.value:
    raise ValueError('--by_stages is for --jitted: give both')
  members, words = source()
  workdir = _WORKDIR.value
  parts = sweep_runs.programs(members, _JITTED.value)
  job = cluster_jobs.Job(
    _PAPER.value or os.path.basename(os.path.abspath(workdir)),
    words,
    workdir,
    ('--jitted',) * _JITTED.value + ('--by_stages',) * _BY_STAGES.value,
  )
  sweep_runs.check_clashes(members, workdir)
  if _DRY.value:
    for line in sweep_runs.states(members, workdir):
      print(line)
    print(f'{len(members)} runs, {len(parts)} programs')
  elif _LAUNCH.value == 'slurm':
    print(job.slurm_script(len(parts)), end='')
  elif _LAUNCH.value == 'jobset':
    print(job.jobset(len(parts), _IMAGE.value))
  elif _PROCESSES.value > 1:
    if _SHARD.value != '0/1':
      raise ValueError('give --processes or --shard, not both')
    count = _PROCESSES.value
    shards = [job.arguments(f'{i}/{count}') for i in range(count)]
    codes = children.run_all([children.program('sweep', *x) for x in shards])
    if stopped := SAVED & {128 - x if x < 0 else x for x in codes}:
      sys.exit(stopped.pop())
    failed = [f'--shard={i}/{count}' for i, code in enumerate(codes) if code]
    if failed:
      raise ValueError(f'these parts failed: {", ".join(failed)}')
    check_any(members, workdir)
  else:
    if _SCALE.value == 'paper':
      recipes.check_files(_PAPER.value, members)
    mine = sweep_runs.shard(parts, _SHARD.value)
    sweep_runs.execute_all(mine, workdir, _JITTED.value, _BY_STAGES.value)
    print(sweep_runs.progress(members, workdir))
    if _SHARD.value == '0/1':  # other shards may have finished some, or will
      check_any(members, workdir)


if __name__ == '__main__':
  configuration.run(main)
