"""The part of a run that is between processes, without a model."""

import json

from absl import app, flags
import jax
import numpy as np

from experiments.flags import processes as process_flags
from rl_jax.records.checkpoints.checkpointer import Checkpointer, abstract_tree
from rl_jax.records.checkpoints.files import quiet_orbax
from rl_jax.records.metrics import DelayedMetrics, MetricsWriter
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stop_signal import StopSignal


def refuse():
  """An error that only process 0 finds."""
  raise ValueError('no such file')


def talk(me):
  """Messages longer than the first buffer, and an error of process 0."""
  long = 'x' * 9000
  got = processes.gather([me, 0.1 * me, long * me])
  try:
    processes.on_main(refuse)
  except ValueError as error:
    return {
      'gather': got == [[0, 0.0, ''], [1, 0.1, long]],
      'error': str(error),
    }


def save_and_restore(me, mesh, key, directory):
  """Arrays in parts, a key and numpy; the newest of two checkpoints."""
  tree = {
    'rows': processes.put(np.arange(6, dtype=np.float32), mesh_lib.rows(mesh)),
    'key': processes.put(key, mesh_lib.replicated(mesh)),
    'numpy': np.arange(3),
  }
  # As an update does: the buffers that were saved may be donated at once.
  double = jax.jit(lambda x: 2 * x, donate_argnums=0)
  saver = Checkpointer(directory, keep_last=1)
  for step in (1, 2):
    saver.save(step, tree, {'by': me})
    tree['rows'] = double(tree['rows'])
  back = saver.restore(abstract_tree(tree))
  saver.close()
  return back


def write(workdir, rows, mesh):
  """A delayed row of metrics: known to all, written by one."""
  delayed = DelayedMetrics(MetricsWriter(workdir, trackers=()))
  mean = jax.jit(lambda x: x.mean(), out_shardings=mesh_lib.replicated(mesh))
  delayed.push(1, {'mean': mean(rows)})
  return delayed.flush()['mean']


def stop_together(me):
  """Returns whether to stop, before and after the process that was asked."""
  stop = StopSignal()
  if me == 1:
    stop.request()
  before = stop.requested
  processes.gather(None)
  return [before, stop.requested]


def main(argv):
  """Prints one JSON line."""
  del argv
  quiet_orbax()
  process_flags.start()
  me, workdir = processes.index(), flags.FLAGS.workdir
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(fsdp=2))
  key = jax.random.key(7)
  with jax.set_mesh(mesh), jax.transfer_guard('disallow'):
    found = talk(me)
    back = save_and_restore(me, mesh, key, f'{workdir}/checkpoints')
    found['row'] = write(workdir, back.tree['rows'], mesh)
    found['stop'] = stop_together(me)
  (shard,) = back.tree['rows'].addressable_shards
  found |= {
    'own': np.arange(6)[processes.own(6)].tolist(),
    'step': back.step,
    'host': back.host_state,
    'shard': np.asarray(shard.data).tolist(),
    'key': np.asarray(jax.random.key_data(back.tree['key'])).tolist(),
    'numpy': back.tree['numpy'].tolist(),
  }
  print(json.dumps(found))


if __name__ == '__main__':
  process_flags.define_flags()
  flags.DEFINE_string('workdir', None, 'For files.')
  app.run(main)
