"""Text of cluster jobs that run a sweep, one task per run."""

import dataclasses
import json
import re
import shlex


@dataclasses.dataclass(frozen=True)
class Job:
  """The command lines of a sweep.

  source: flags that say which runs, as --paper=NAME or --config=... --set=...
  flags: further flags, as --jitted.
  """

  name: str
  source: tuple[str, ...]
  workdir: str
  flags: tuple[str, ...] = ()

  def arguments(self, shard: str) -> list[str]:
    """The flags of `sweep` that run one shard, 'i/n'."""
    return [
      *self.source,
      f'--workdir={self.workdir}',
      *self.flags,
      f'--shard={shard}',
    ]

  def slurm_script(self, count: int) -> str:
    """A SLURM job array with one task per run."""
    words = ['-m', 'experiments.sweep', *self.arguments('INDEX')]
    line = shlex.join(words).replace(
      '--shard=INDEX', f'--shard=${{SLURM_ARRAY_TASK_ID}}/{count}'
    )
    name = re.sub(r'[^\w.@-]+', '_', self.name)
    return (
      '#!/bin/bash\n'
      f'#SBATCH --job-name={name}\n'
      f'#SBATCH --array=0-{count - 1}\n'
      f'#SBATCH --output={name}-%A_%a.log\n'
      'set -euo pipefail\n'
      f'python {line}\n'
    )

  def jobset(self, count: int, image: str) -> str:
    """A Kubernetes JobSet (JSON, which is YAML) with one indexed job."""
    words = ['python', '-m', 'experiments.sweep']
    words += self.arguments(f'$(JOB_COMPLETION_INDEX)/{count}')
    container = {'name': 'run', 'image': image, 'command': words}
    pod = {'restartPolicy': 'OnFailure', 'containers': [container]}
    job = {
      'completionMode': 'Indexed',
      'completions': count,
      'parallelism': count,
      'template': {'spec': pod},
    }
    replicated = [{'name': 'runs', 'replicas': 1, 'template': {'spec': job}}]
    name = re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')
    return json.dumps(
      {
        'apiVersion': 'jobset.x-k8s.io/v1alpha2',
        'kind': 'JobSet',
        'metadata': {'name': name},
        'spec': {'replicatedJobs': replicated},
      },
      indent=2,
    )
