"""Text of cluster jobs that run a sweep, one task per run."""

import json
import shlex
import sys


def command(paper: str, workdir: str, shard: str, *flags: str) -> list[str]:
  """The command line that runs one shard of a sweep."""
  return [
    sys.executable,
    '-m',
    'experiments.sweep',
    f'--paper={paper}',
    f'--workdir={workdir}',
    *flags,
    f'--shard={shard}',
  ]


def slurm_script(paper: str, workdir: str, count: int, *flags: str) -> str:
  """A SLURM job array with one task per run."""
  words = command(paper, workdir, 'INDEX', *flags)[1:]
  line = shlex.join(words).replace('INDEX', f'${{SLURM_ARRAY_TASK_ID}}/{count}')
  return (
    '#!/bin/bash\n'
    f'#SBATCH --job-name={paper}\n'
    f'#SBATCH --array=0-{count - 1}\n'
    f'#SBATCH --output={paper}-%A_%a.log\n'
    'set -euo pipefail\n'
    f'python {line}\n'
  )


def jobset(
  paper: str, workdir: str, count: int, image: str, *flags: str
) -> str:
  """A Kubernetes JobSet (JSON, which is YAML) with one indexed job."""
  shard = f'$(JOB_COMPLETION_INDEX)/{count}'
  words = command(paper, workdir, shard, *flags)[1:]
  container = {'name': 'run', 'image': image, 'command': ['python', *words]}
  pod = {'restartPolicy': 'OnFailure', 'containers': [container]}
  job = {
    'completionMode': 'Indexed',
    'completions': count,
    'parallelism': count,
    'template': {'spec': pod},
  }
  replicated = [{'name': 'runs', 'replicas': 1, 'template': {'spec': job}}]
  name = paper.replace('_', '-')
  return json.dumps(
    {
      'apiVersion': 'jobset.x-k8s.io/v1alpha2',
      'kind': 'JobSet',
      'metadata': {'name': name},
      'spec': {'replicatedJobs': replicated},
    },
    indent=2,
  )
