"""The launch files: syntax, and the commands that they run.

Schedulers are replaced by programs that record their arguments; the binary
parses the flags.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml

from experiments.flags import processes as process_flags
from experiments.sweeps import cluster_jobs

ROOT = pathlib.Path(__file__).resolve().parents[3]
LAUNCH = ROOT / 'experiments' / 'launch'
ARGUMENTS = [
  '--config=configs/worlds/bandit.py',
  '--method=grpo',
  "--set=task.reward_weights={'value': 1.0}",
  '--workdir=/runs/a b',
]
# The flags of the binary, which are defined when it is imported.
PARSE = """
import json, sys
from absl import flags
import experiments.train
flags.FLAGS([sys.argv[0], *json.loads(sys.argv[1])])
names = ('distributed', 'config', 'method', 'workdir', 'set')
print(json.dumps([flags.FLAGS[name].value for name in names]))
"""


@pytest.fixture
def record(tmp_path, monkeypatch):
  """Puts a program on the path; returns a function that reads its calls."""

  def make(name, exit_code=0):
    calls = tmp_path / f'{name}.json'
    program = tmp_path / 'bin' / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(
      f'#!{sys.executable}\n'
      'import json, sys\n'
      f'open({str(calls)!r}, "a").write(json.dumps(sys.argv[1:]) + "\\n")\n'
      f'sys.exit({exit_code})\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv('PATH', f'{program.parent}:{os.environ["PATH"]}')
    return lambda: [json.loads(x) for x in calls.read_text().splitlines()]

  return make


def bash(name, *arguments):
  """The finished script, after `bash -n`."""
  path = LAUNCH / name
  subprocess.run(['bash', '-n', path], check=True)
  return subprocess.run([path, *arguments], cwd=ROOT).returncode


def after_train(words):
  """The arguments of `python -m experiments.train` in a command."""
  at = words.index('experiments.train')
  assert words[at - 1] == '-m' and 'python' in words[at - 2]
  return words[at + 1 :]


def options(path, mark):
  """The long options in the lines of a script that start with a mark."""
  lines = [line for line in path.read_text().splitlines() if mark in line]
  words = [word for line in lines for word in shlex.split(line)[1:]]
  assert words and all(word.startswith('--') for word in words)
  return dict(word[2:].partition('=')[::2] for word in words)


@pytest.mark.parametrize(('code', 'requeued'), [(0, 0), (143, 1), (1, 0)])
def test_the_slurm_script(record, monkeypatch, code, requeued):
  """srun gets the command; a job stopped by the time limit is requeued."""
  srun, scontrol = record('srun', code), record('scontrol')
  monkeypatch.setenv('SLURM_JOB_ID', '42')
  assert bash('slurm.sh', *ARGUMENTS) == code
  (words,) = srun()
  assert after_train(words) == ['--distributed', '--take_over', *ARGUMENTS]
  assert '--kill-on-bad-exit=1' in words
  if requeued:
    assert scontrol() == [['requeue', '42']]
  found = options(LAUNCH / 'slurm.sh', '#SBATCH')
  assert found['signal'] == 'TERM@300'
  # JAX gives every SLURM task one GPU.
  assert found['ntasks-per-node'] == found['gpus-per-node']
  assert {'nodes', 'time', 'requeue', 'open-mode', 'output'} <= found.keys()


def test_the_tpu_command(record, monkeypatch):
  """Every worker gets the command, quoted for its own shell."""
  gcloud = record('gcloud')
  monkeypatch.setenv('TPU', 'slice')
  monkeypatch.setenv('ZONE', 'zone')
  assert bash('tpu_vm.sh', *ARGUMENTS) == 0
  (words,) = gcloud()
  assert words[:5] == ['compute', 'tpus', 'tpu-vm', 'ssh', 'slice']
  assert {'--worker=all', '--zone=zone'} <= set(words)
  command = words[-1].removeprefix('--command=')
  assert after_train(shlex.split(command)) == ['--distributed', *ARGUMENTS]
  monkeypatch.delenv('ZONE')
  assert bash('tpu_vm.sh', *ARGUMENTS) != 0


def jobset():
  """The documents of the YAML file by kind."""
  text = (LAUNCH / 'jobset.yaml').read_text()
  return {item['kind']: item for item in yaml.safe_load_all(text)}


def test_the_jobset():
  """An indexed job whose failure restarts all pods; JAX may list them.

  The API is that of the JobSet that a sweep prints.
  """
  found = jobset()
  printed = json.loads(cluster_jobs.Job('name', (), '/runs').jobset(2, 'image'))
  top = found['JobSet']
  assert top['apiVersion'] == printed['apiVersion']
  (job,) = top['spec']['replicatedJobs']
  assert job['replicas'] == 1
  job = job['template']['spec']
  assert job['completionMode'] == 'Indexed'
  assert job['completions'] == job['parallelism'] > 1
  assert job['backoffLimit'] == 0 < top['spec']['failurePolicy']['maxRestarts']
  pod = job['template']['spec']
  (container,) = pod['containers']
  (mount,), (volume,) = container['volumeMounts'], pod['volumes']
  assert mount['name'] == volume['name']
  words = after_train(container['command'])
  assert any(w.startswith(f'--workdir={mount["mountPath"]}/') for w in words)
  gpus = job['parallelism'] * container['resources']['limits']['nvidia.com/gpu']
  assert f'--set=mesh.fsdp={gpus}' in words
  # What JAX's detection asks of the cluster.
  account = found['ServiceAccount']['metadata']['name']
  assert pod['serviceAccountName'] == account
  assert found['RoleBinding']['subjects'][0]['name'] == account
  assert (
    found['RoleBinding']['roleRef']['name']
    == (found['Role']['metadata']['name'])
  )
  allowed = {
    r: rule['verbs']
    for rule in found['Role']['rules']
    for r in rule['resources']
  }
  assert allowed.keys() == {'pods', 'services', 'jobs'}
  assert all({'get', 'list'} <= set(verbs) for verbs in allowed.values())


def test_the_binary_knows_the_flags():
  """The command of the YAML file, by the parser of `train`."""
  pod = jobset()['JobSet']['spec']['replicatedJobs'][0]['template']['spec']
  (container,) = pod['template']['spec']['containers']
  words = after_train(container['command'])
  found = subprocess.run(
    [sys.executable, '-c', PARSE, json.dumps(words)],
    cwd=ROOT,
    env={**os.environ, 'PYTHONPATH': str(ROOT)},
    check=True,
    capture_output=True,
    text=True,
  )
  distributed, config, method, workdir, sets = json.loads(found.stdout)
  assert distributed is True
  assert (ROOT / config).exists()
  assert (ROOT / 'configs' / 'methods' / f'{method}.py').exists()
  assert workdir and sets


@pytest.mark.parametrize(
  ('environ', 'several'),
  [
    ({}, False),
    ({'SLURM_STEP_NUM_TASKS': '1', 'SLURM_NTASKS': '8'}, False),  # a shell
    ({'SLURM_STEP_NUM_TASKS': '2'}, True),
    ({'OMPI_COMM_WORLD_SIZE': '2'}, True),
    ({'TPU_WORKER_HOSTNAMES': 'localhost'}, False),
    ({'TPU_WORKER_HOSTNAMES': 'a,b'}, True),
    ({'JAX_COORDINATOR_ADDRESS': 'a:1'}, True),
    ({'KUBERNETES_SERVICE_HOST': '10.0.0.1'}, False),  # any pod has it
  ],
)
def test_one_of_several_processes_is_recognised(environ, several):
  """A single process within an allocation does not wait for others."""
  assert process_flags.started_by_several(environ) is several


def test_the_extras_of_the_launch_files_exist():
  """Pip skips an unknown extra with a warning: no GPU would be used."""
  project = tomllib.loads((ROOT / 'pyproject.toml').read_text())
  known = project['project']['optional-dependencies'].keys()
  for path in LAUNCH.iterdir():
    named = re.findall(r'EXTRAS=(\w+)', path.read_text())
    assert set(named) <= known, path.name
