"""Numbers of a compiler for a program: memory, code, kernels and time."""

import collections
from collections.abc import Mapping
import dataclasses
import pathlib
import re
import tempfile
import time
from typing import Any

import jax

from rl_jax.planning import collectives
from rl_jax.planning.collectives import Collective

# Custom calls that compute; all others of XLA's own are annotations.
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_KERNELS = re.compile(r'tpu_custom_call|cudnn|cublas|triton|fmha', re.I)
# In the memory report of a program: what lies in HBM.
_IN_HBM = re.compile(r'\(color=0\)\nTotal bytes: (\d+)')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
  """A compiled program, on each device."""

  memory: int  # bytes at its peak, arguments and results included
  temporaries: int  # bytes
  code: int  # bytes; 0 for GPUs, whose compiler does not say
  seconds: float  # of the processor, to compile it
  kernels: dict[str, int]  # calls in the text, by their target
  collectives: list[Collective]
  by_token: list[Collective]  # of one turn of loops whose end depends on data
  shared: str = ''  # the stage that has compiled it already; '': none


def all_compiled(
  lowered: dict[str, jax.stages.Lowered],
  *,
  devices: int,
  unknown_trips: Mapping[str, int],
  platform: str = '',
) -> dict[str, Program]:
  """The programs by stage; those of equal text are compiled once.

  Where an evaluation draws as many rows by the same settings as training, both
  have one text, and JAX finds the program in its persistent cache.

  devices, unknown_trips: see collectives.count; the latter by stage. platform:
  see compiled.
  """
  stages: dict[str, str] = {}
  found: dict[str, Program] = {}
  for stage, program in lowered.items():
    first = stages.setdefault(program.as_text(), stage)
    if first != stage:
      found[stage] = dataclasses.replace(found[first], shared=first)
      continue
    found[stage] = compiled(
      program,
      devices=devices,
      unknown_trips=unknown_trips[stage],
      platform=platform,
    )
  return found


def compiled(
  lowered: jax.stages.Lowered,
  *,
  devices: int,
  unknown_trips: int = 1,
  platform: str = '',
) -> Program:
  """Compiles a program and reads what the compiler says of it.

  Args:
    devices, unknown_trips: see collectives.count.
    platform: the name of the one that the program is for. With 'tpu' memory is
      that of the compiler's report: memory_analysis counts the gaps between
      buffers twice there, which are up to a fifth of a program.
  """
  with tempfile.TemporaryDirectory() as folder:
    report = {'xla_dump_to': folder, 'xla_dump_hlo_as_text': True}
    start = time.process_time()
    program = lowered.compile(report if platform == 'tpu' else None)
    seconds = time.process_time() - start
    in_hbm = reported(pathlib.Path(folder))
  text, stats = program.as_text() or '', program.memory_analysis()
  assert stats is not None  # all the compilers that are used here count it
  memory = in_hbm or peak_memory(stats)
  return Program(
    memory=memory,
    temporaries=memory - peak_memory(stats) + stats.temp_size_in_bytes,
    code=stats.generated_code_size_in_bytes,
    seconds=seconds,
    kernels=dict(
      collections.Counter(
        target for target in _TARGET.findall(text) if _KERNELS.search(target)
      )
    ),
    collectives=collectives.count(
      text, devices=devices, unknown_trips=unknown_trips
    ),
    by_token=collectives.in_loops(text, devices=devices),
  )


def reported(folder: pathlib.Path) -> int:
  """Bytes in HBM by the memory report in a folder; 0 without one."""
  reports = folder.glob('*memory-usage-report.txt')
  found = [_IN_HBM.search(report.read_text()) for report in reports]
  return max((int(match[1]) for match in found if match), default=0)


def peak_memory(stats: Any) -> int:
  """Bytes of arguments, results and temporaries; donated ones count once.

  Of programs for TPU at most that, see compiled.
  """
  return (
    stats.argument_size_in_bytes
    + stats.output_size_in_bytes
    + stats.temp_size_in_bytes
    - stats.alias_size_in_bytes
  )
