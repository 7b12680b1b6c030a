"""Numbers of a compiler for a program: memory, code, kernels and time."""

import collections
from collections.abc import Mapping
import dataclasses
import re
import time
from typing import Any

import jax

from rl_jax.planning import collectives
from rl_jax.planning.collectives import Collective

# Custom calls that compute; all others of XLA's own are annotations.
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_KERNELS = re.compile(r'tpu_custom_call|cudnn|cublas|triton|fmha', re.I)


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
) -> dict[str, Program]:
  """The programs by stage; those of equal text are compiled once.

  Where an evaluation draws as many rows by the same settings as training, both
  have one text, and JAX finds the program in its persistent cache.

  devices, unknown_trips: see collectives.count; the latter by stage.
  """
  stages: dict[str, str] = {}
  found: dict[str, Program] = {}
  for stage, program in lowered.items():
    first = stages.setdefault(program.as_text(), stage)
    if first != stage:
      found[stage] = dataclasses.replace(found[first], shared=first)
      continue
    found[stage] = compiled(
      program, devices=devices, unknown_trips=unknown_trips[stage]
    )
  return found


def compiled(
  lowered: jax.stages.Lowered, *, devices: int, unknown_trips: int = 1
) -> Program:
  """Compiles a program and reads what the compiler says of it.

  devices, unknown_trips: see collectives.count.
  """
  start = time.process_time()
  program = lowered.compile()
  seconds = time.process_time() - start
  text, stats = program.as_text() or '', program.memory_analysis()
  assert stats is not None  # all the compilers that are used here count it
  return Program(
    memory=peak_memory(stats),
    temporaries=stats.temp_size_in_bytes,
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


def peak_memory(stats: Any) -> int:
  """Bytes of arguments, results and temporaries; donated ones count once."""
  return (
    stats.argument_size_in_bytes
    + stats.output_size_in_bytes
    + stats.temp_size_in_bytes
    - stats.alias_size_in_bytes
  )
