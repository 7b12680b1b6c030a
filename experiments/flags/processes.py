"""Flags of a run with several processes, and a function that joins them.

With a launcher that JAX knows (SLURM, Kubernetes, Cloud TPU, Open MPI)
--distributed suffices; elsewhere every process needs --coordinator=HOST:PORT,
--num_processes and its --process_id.
"""

from collections.abc import Mapping
import os

from absl import flags

from rl_jax.runtime import processes


def define_flags() -> None:
  """Defines the flags; values are read by `start`."""
  flags.DEFINE_bool(
    'distributed',
    None,
    'Join the processes that a launcher started; by default if srun, mpirun or '
    'a TPU slice started more than one.',
  )
  flags.DEFINE_string('coordinator', None, 'HOST:PORT of process 0.')
  flags.DEFINE_integer('num_processes', None, 'Processes of the run.')
  flags.DEFINE_integer('process_id', None, 'Of this process, from 0.')
  flags.DEFINE_integer(
    'peer_timeout_seconds',
    100,
    'A process that is silent for this long is dead: all others end.',
    lower_bound=1,
  )
  flags.DEFINE_float(
    'stall_seconds',
    3600.0,
    'A process that exchanges nothing for this long ends all processes.',
    lower_bound=1.0,
  )


def started_by_several(environ: Mapping[str, str]) -> bool:
  """True if the environment is that of one of several processes."""
  sizes = ('SLURM_STEP_NUM_TASKS', 'OMPI_COMM_WORLD_SIZE')
  return (
    any(int(environ.get(name, 1)) > 1 for name in sizes)
    or ',' in environ.get('TPU_WORKER_HOSTNAMES', '')
    or 'JAX_COORDINATOR_ADDRESS' in environ
  )


def start() -> None:
  """Joins the other processes, if there are any."""
  values = flags.FLAGS
  given = (values.coordinator, values.num_processes, values.process_id)
  wanted = values.distributed
  if wanted is None:
    wanted = given != (None, None, None) or started_by_several(os.environ)
  if wanted:
    processes.start(
      coordinator=values.coordinator,
      num_processes=values.num_processes,
      process_id=values.process_id,
      peer_timeout_seconds=values.peer_timeout_seconds,
      stall_seconds=values.stall_seconds,
    )
