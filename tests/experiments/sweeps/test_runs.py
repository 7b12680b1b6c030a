"""Sets of runs, their shards and execution, and cluster jobs."""

import json
import re
import subprocess
import sys

import pytest

from experiments.sweeps import cluster_jobs
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics
from rl_jax.runs import lock


def test_products_zips_and_chains():
  """The last key varies fastest; zips need equal lengths."""
  pairs = sweep_runs.product({'a': [1, 2], 'b': [3, 4]})
  assert [tuple(p.values()) for p in pairs] == [(1, 3), (1, 4), (2, 3), (2, 4)]
  assert sweep_runs.zipped({'a': [1, 2], 'b': [3, 4]}) == [
    {'a': 1, 'b': 3},
    {'a': 2, 'b': 4},
  ]
  with pytest.raises(ValueError, match="different lengths: {'a': 1, 'b': 2}"):
    sweep_runs.zipped({'a': [1], 'b': [3, 4]})
  both = sweep_runs.crossed(sweep_runs.product({'a': [1, 2]}), [{'b': 5}])
  assert both == [{'a': 1, 'b': 5}, {'a': 2, 'b': 5}]
  assert len(sweep_runs.chain(pairs, both)) == 6


def test_runs_are_told_apart_by_their_configuration():
  """A setting equal to the default makes the same run: refused."""
  settings = sweep_runs.product({'config': ['bandit'], 'seed': [0, 1]})
  first, second = sweep_runs.runs(settings)
  assert first.digest != second.digest and first.name != second.name
  assert first.config.seed == 0 and second.config.seed == 1
  assert re.fullmatch(r'config=bandit-seed=0-[0-9a-f]{12}', first.name)
  with pytest.raises(ValueError, match='are the same run'):
    sweep_runs.runs(
      [*settings, {'config': 'bandit', 'method': 'grpo', 'seed': 0}]
    )


def test_another_configuration_under_a_known_name_is_refused(tmp_path):
  """A line with the setting of a run and another digest; progress by state."""
  settings = sweep_runs.product({'config': ['bandit'], 'seed': [0, 1, 2]})
  members = sweep_runs.runs(settings)
  lines = [{'setting': settings[0], 'digest': members[0].digest}]
  lines.append(
    {'setting': settings[1], 'digest': members[1].digest, 'failed': 'why'}
  )
  path = tmp_path / sweep_runs.RESULTS

  def write():
    return path.write_text(''.join(json.dumps(x) + '\n' for x in lines))

  write()
  sweep_runs.check_clashes(members, str(tmp_path))
  text = sweep_runs.progress(members, str(tmp_path))
  assert text.startswith('1 of 3 runs are finished, 1 failed')
  assert text.splitlines()[1:] == ['1 failed: why']
  states = [x.split(': ', 1)[1] for x in sweep_runs.states(members, tmp_path)]
  assert states == ['finished', 'failed: why', '0 of 60 iterations']
  lines[0]['digest'] = 'other'
  write()
  with pytest.raises(ValueError, match="'seed': 0} with another configuration"):
    sweep_runs.execute_all([members], str(tmp_path))


def test_a_mistake_is_found_before_the_first_run():
  """Every configuration is resolved when the sweep is read."""
  with pytest.raises(ValueError, match='group_sise'):
    sweep_runs.runs([{'config': 'bandit', 'rollout.group_sise': 4}])
  with pytest.raises(ValueError, match='Did you mean .bandit_methods.'):
    sweep_runs.load('bandit_method')


def test_shards_are_a_partition():
  """E0: every run in one part."""
  members = sweep_runs.load('bandit_methods')
  parts = [list(sweep_runs.shard(members, f'{i}/4')) for i in range(4)]
  assert sorted(r.name for part in parts for r in part) == sorted(
    r.name for r in members
  )
  for wrong in ('4/4', '1', 'a/b'):
    with pytest.raises(ValueError, match='is not i/n'):
      list(sweep_runs.shard(members, wrong))


def job_in(workdir):
  return cluster_jobs.Job(
    'bandit_methods', ('--paper=bandit_methods',), workdir
  )


def test_the_slurm_script_is_bash(tmp_path):
  """One task per run; `bash -n` accepts the script."""
  script = job_in('/a dir/x').slurm_script(21)
  path = tmp_path / 'job.sh'
  path.write_text(script)
  subprocess.run(['bash', '-n', str(path)], check=True)
  assert '#SBATCH --array=0-20\n' in script
  assert "'--workdir=/a dir/x'" in script
  assert '--shard=${SLURM_ARRAY_TASK_ID}/21' in script.splitlines()[-1]


def test_the_jobset_is_an_indexed_job():
  """The JSON; the job index is in the flag --shard."""
  found = json.loads(job_in('/runs').jobset(21, 'image:1'))
  assert found['kind'] == 'JobSet'
  job = found['spec']['replicatedJobs'][0]['template']['spec']
  assert job['completions'] == job['parallelism'] == 21
  (container,) = job['template']['spec']['containers']
  assert container['image'] == 'image:1'
  assert container['command'][-1] == '--shard=$(JOB_COMPLETION_INDEX)/21'


@pytest.mark.slow
def test_finished_runs_are_skipped(tmp_path, monkeypatch):
  """Three runs of two iterations; the second call adds nothing."""
  members = sweep_runs.runs(
    sweep_runs.product(
      {
        'config': ['bandit'],
        'method': ['grpo', 'ppo_max@no_kl', 'rloo'],
        'iterations': [2],
        'evaluation.every': [0],
        'model.value_head': [True],
      }
    )
  )
  for run in members[:2]:
    sweep_runs.execute(run, str(tmp_path))
  rows = metrics.read_jsonl(tmp_path / sweep_runs.RESULTS)
  assert [row['setting']['method'] for row in rows] == ['grpo', 'ppo_max@no_kl']
  assert sweep_runs.finished(str(tmp_path)) == {
    run.digest for run in members[:2]
  }
  assert rows[0]['last']['step'] == 2 and rows[0]['tokens'] > 0
  assert {'versions', 'commit', 'device', 'seconds'} <= rows[0].keys()


@pytest.mark.parametrize(
  ('last', 'kept'), [('', []), ('{"digest": "a"}', ['a']), ('{"dig', [])]
)
def test_a_line_without_its_end_spoils_no_other(tmp_path, last, kept):
  """An editor may leave out the last newline, a full disk cuts a line."""
  path = tmp_path / sweep_runs.RESULTS
  path.write_text('{"digest": "0"}\n' + last)
  sweep_runs.add_lines(str(tmp_path), [{'digest': 'b'}])
  found = [row['digest'] for row in sweep_runs.results(str(tmp_path))]
  assert found == ['0', *kept, 'b']


def test_a_run_of_another_process_is_no_failed_one(tmp_path):
  """A line would keep it from ever being run again."""
  (run,) = sweep_runs.runs([{'config': 'bandit', 'method': 'grpo'}])
  held = lock.Lock(str(tmp_path / run.name))
  try:
    sweep_runs.execute_all([[run]], str(tmp_path))
  finally:
    held.release()
  assert sweep_runs.results(str(tmp_path)) == []


def test_jitted_runs_of_another_process_are_left_to_it(tmp_path, monkeypatch):
  """Others are held before they compile; one that ended is not run again."""
  settings = {'config': ['bandit'], 'method': ['grpo'], 'seed': [0, 1, 2]}
  members = sweep_runs.runs(sweep_runs.product(settings))
  folders = [str(tmp_path / run.name) for run in members]
  compiled = []

  def whole_runs(configs):
    compiled.append([config.seed for config in configs])
    for config in configs:
      with pytest.raises(lock.HeldError):
        lock.Lock(folders[config.seed])
    raise ValueError('the program')

  monkeypatch.setattr(sweep_runs.program, 'WholeRuns', whole_runs)
  elsewhere = [lock.Lock(folder) for folder in folders]
  sweep_runs.execute_all([members], str(tmp_path), jitted=True)
  assert not compiled and not sweep_runs.results(str(tmp_path))
  for held in elsewhere[1:]:
    held.release()
  sweep_runs.execute_all([members], str(tmp_path), jitted=True)
  found = [row['setting']['seed'] for row in sweep_runs.results(str(tmp_path))]
  assert compiled == [[1, 2]] and found == [1, 2]
  elsewhere[0].release()
  sweep_runs.execute_jitted(members, str(tmp_path))  # 1 and 2 have lines
  assert compiled[1:] == [[0]]


def test_printing_jobs_touches_nothing(tmp_path, answers_of):
  """--launch prints and exits."""
  target = tmp_path / 'runs'
  arguments = [*job_in(str(target)).arguments('0/1'), '--launch=slurm']
  ((code, out, _),) = answers_of(tmp_path, {'sweep': [arguments]})['sweep']
  assert code == 0, out
  assert out.startswith('#!/bin/bash') and not target.exists()
  assert sys.executable not in out


def test_seeds_of_a_method_are_one_program():
  """Runs that cannot be jitted are single, after the programs."""
  settings = sweep_runs.equal_conditions(
    'bandit', ['dapo', 'grpo', 'ppo'], {'iterations': 3}, seeds=3
  )
  members = sweep_runs.runs(settings)
  assert [r.config.model.value_head for r in members] == [False] * 6 + [
    True
  ] * 3
  parts = sweep_runs.programs(members, jitted=True)
  names = [[run.setting['method'] for run in part] for part in parts]
  assert names == [['grpo'] * 3, ['ppo'] * 3, ['dapo'], ['dapo'], ['dapo']]
  assert [len(p) for p in sweep_runs.programs(members, jitted=False)] == [1] * 9


@pytest.mark.slow
def test_jitted_runs_leave_the_files_of_ordinary_ones(tmp_path):
  """Two seeds in one program; the line of a failed method has its reason."""
  settings = sweep_runs.equal_conditions(
    'bandit', ['grpo', 'seed_grpo'], {'iterations': 2}, seeds=2
  )
  members = sweep_runs.runs(settings)
  parts = sweep_runs.programs(members, jitted=True)
  for _ in range(2):  # the second call has nothing to do
    sweep_runs.execute_all(parts, str(tmp_path), jitted=True)
    rows = metrics.read_jsonl(tmp_path / sweep_runs.RESULTS)
    assert len(rows) == 4
  first, _, failed, _ = rows
  assert first['last']['step'] == 2 and first['jitted'] == 2
  assert "extras['cluster_id_B'] is missing" in failed['failed']
  run = members[0]
  sweep_runs.execute(run, str(tmp_path / 'loop'))
  (ordinary,) = metrics.read_jsonl(tmp_path / 'loop' / sweep_runs.RESULTS)
  assert ordinary['tokens'] == first['tokens']
  names = []
  for part in ('', 'loop'):
    path = tmp_path / part / run.name / metrics.METRICS
    found = [row.keys() for row in metrics.read_jsonl(path)]
    names.append([{n for n in row if 'time/' not in n} for row in found])
  assert names[0] == names[1]


def test_a_line_of_no_run_is_named(tmp_path):
  (tmp_path / sweep_runs.RESULTS).write_text('{"digest": "a"}\n{"step": 1}\n')
  with pytest.raises(ValueError, match='results.jsonl:2 is not the line of a'):
    sweep_runs.finished(str(tmp_path))


def test_an_error_without_a_text_fails_its_run_alone(tmp_path, monkeypatch):
  """A user's code may `raise ValueError` without a text."""
  members = sweep_runs.runs(
    sweep_runs.product({'config': ['bandit'], 'seed': [0, 1]})
  )

  def execute(run, workdir):
    raise ValueError

  monkeypatch.setattr(sweep_runs, 'execute', execute)
  sweep_runs.execute_all([[run] for run in members], str(tmp_path))
  failed = [row['failed'] for row in sweep_runs.results(str(tmp_path))]
  assert failed == ['ValueError'] * 2


def test_seconds_are_of_iterations_alone():
  """The row of an evaluation before the first one has none."""
  (run,) = sweep_runs.runs([{'config': 'bandit', 'iterations': 2}])
  rows = [{'step': 0, 'evaluation/pass_at_1': 0.0}]
  rows += [
    {
      **{'step': n, 'time/iteration_seconds': 2.0 * n},
      **{'rollout/tokens_total': n, 'rollout/reward': 0.5},
      **{'rollout/rounds': 1, 'policy/entropy': 1.0},
    }
    for n in (1, 2)
  ]
  found = sweep_runs._numbers(run, rows)
  assert (found['seconds'], found['iteration_seconds']) == (6.0, 3.0)


def test_a_job_has_a_name_that_schedulers_take():
  """The name of a work directory may hold a space."""
  job = cluster_jobs.Job('my grid', ('--paper=x',), 'runs/my grid')
  script = job.slurm_script(2)
  assert '#SBATCH --job-name=my_grid\n' in script
  assert '#SBATCH --output=my_grid-%A_%a.log\n' in script
  assert "'--workdir=runs/my grid'" in script
