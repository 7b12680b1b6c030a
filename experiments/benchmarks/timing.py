"""Seconds of calls, and the highest rates that this process reaches."""

from collections.abc import Callable, Mapping
import time

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.runtime.platform import Platform

Clock = Callable[[], float]


def seconds(
  function: Callable, repeats: int, clock: Clock = time.perf_counter
) -> list[float]:
  """Seconds of each call after a first one."""
  return seconds_in_turn({'': function}, repeats, clock=clock)['']


def seconds_in_turn(
  functions: Mapping[str, Callable],
  repeats: int,
  untimed: int = 0,
  clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
  """The same of several functions by name, called in turn.

  In turn, because other load on the machine then affects all of them. untimed:
  number of calls before each timed one; they bring back memory that the host of
  a virtual machine has reclaimed since the last call.
  """
  times = {name: [] for name in functions}
  for function in functions.values():
    function()
  for _ in range(repeats):
    for name, function in functions.items():
      for _ in range(untimed):
        function()
      started = clock()
      function()
      times[name].append(clock() - started)
  return times


def wall_and_cpu_seconds(
  function: Callable, repeats: int
) -> tuple[list[float], list[float]]:
  """Wall and CPU seconds (of this process) of each call after a first one."""
  function()
  wall, cpu = [], []
  for _ in range(repeats):
    started = time.perf_counter(), time.process_time()
    function()
    wall.append(time.perf_counter() - started[0])
    cpu.append(time.process_time() - started[1])
  return wall, cpu


def rates(
  dtype: str, mesh: jax.sharding.Mesh, size: int | None = None
) -> tuple[float, float]:
  """(FLOP/s of matrix products, bytes/s of copies), on all devices at once.

  size: of the matrices; default 2,048 on CPU, 8,192 elsewhere, where a call
  also repeats the operation so that its start does not count.
  """
  cpu = Platform.of_process().is_cpu
  size, repeats = size or (2048 if cpu else 8192), 1 if cpu else 8
  by_rows = jax.NamedSharding(mesh, jax.P('data'))
  x = jnp.ones((size * mesh.size, size), dtype, device=by_rows)
  weight = jnp.full((size, size), 1 / size, dtype)  # products stay 1
  y = jnp.ones((8 * size**2 * mesh.size,), jnp.float32, device=by_rows)

  def repeated(step):
    return jax.jit(
      lambda z, *rest: lax.fori_loop(0, repeats, lambda _, z: step(z, *rest), z)
    )

  product, copy = repeated(jnp.matmul), repeated(lambda y: y + 1)
  multiplied = min(seconds(lambda: product(x, weight).block_until_ready(), 5))
  copied = min(seconds(lambda: copy(y).block_until_ready(), 5))
  flop = 2 * x.size * size * repeats
  return flop / multiplied, 2 * y.nbytes * repeats / copied
