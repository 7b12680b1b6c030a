"""Memory of programs for TPU, without the time that their code takes.

Their compiler reports memory when buffers have places, and makes code after
that, which is most of its time: a process compiles until then and is ended.
"""

import multiprocessing
import pathlib
import re
import tempfile

from rl_jax.planning import abstract_run
from rl_jax.planning.targets import Target
from rl_jax.runtime import mesh as mesh_lib

# Temporaries in HBM; those in other memories name their color.
_HEAP = re.compile(r'^allocation \d+: size (\d+), preallocated-temp', re.M)

_LATER = '*_after_buffer_assignment.txt'  # is written after what is read


def lowered(config, model, target, stage):
  """The program of a stage on the first devices of a target."""
  count = config.mesh.fsdp * config.mesh.tensor
  devices = Target.parse(target).devices()[:count]
  mesh = mesh_lib.make_mesh(config.mesh, devices)
  return abstract_run.AbstractRun(config, model, mesh).lower()[stage]


def temporaries(config, model, target, stage):
  """Bytes beside arguments and results, as `programs.compiled` has them."""
  context = multiprocessing.get_context('spawn')
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    process = context.Process(
      target=_compile, args=(config, model, target, stage, name), daemon=True
    )
    process.start()
    while process.is_alive() and not list(folder.glob(_LATER)):
      process.join(timeout=0.2)
    process.kill()
    process.join()
    assert list(folder.glob(_LATER)), f'{stage}: the compiler has failed'
    [buffers] = folder.glob('*-buffer-assignment.txt')
    return sum(map(int, _HEAP.findall(buffers.read_text())))


def _compile(config, model, target, stage, folder):
  program = lowered(config, model, target, stage)
  program.compile({'xla_dump_to': folder, 'xla_dump_hlo_as_text': True})
