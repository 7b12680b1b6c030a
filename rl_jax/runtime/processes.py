"""The processes of one run: start, communication, division of work.

Every process runs the same program on the same numbers. Prompts, serials and
selector states are computed on every process and are equal by construction;
tokens are read, decoded and verified for `own` rows only, and one `gather` per
generation round sends the outcomes of all rows to all processes. Process 0
writes the files and reads the responses that it logs. With one process no
function communicates.
"""

from collections.abc import Callable
import json
import os
import sys
import traceback
from typing import Any

import jax
from jax.experimental import multihost_utils
import numpy as np

from rl_jax.runtime import watchdog

_HEADER = 4  # bytes: the length of the message
# Both are of the last exchange, and so equal on all processes.
_capacity = 1 << 12  # bytes of a message that fit
_agreed: dict[str, Any] = {}
_proposals: dict[str, Any] = {}  # of this process, sent with the next message
_alone = False  # inside a function that only process 0 runs


def start(
  *,
  coordinator: str | None = None,
  num_processes: int | None = None,
  process_id: int | None = None,
  peer_timeout_seconds: int = 100,
  stall_seconds: float = 3600.0,
) -> None:
  """Joins the processes of this run; call it before anything touches JAX.

  Without an address JAX finds the other processes itself: SLURM, Kubernetes
  (with `pip install 'jax[k8s]'`), Cloud TPU, Open MPI.

  Args:
    coordinator: HOST:PORT of process 0; then the next two must be given too.
    peer_timeout_seconds: without a heartbeat of a process for so long all
      others end with a message.
    stall_seconds: without an exchange for so long this process prints its
      stack and ends, and with it all others.

  Raises: ValueError if the address is incomplete or wrong, or if there is none
    and JAX finds none.
  """
  given = (coordinator, num_processes, process_id)
  if None in given and given != (None, None, None):
    raise ValueError(
      'coordinator, num_processes and process_id go together, but they are '
      f'{coordinator!r}, {num_processes} and {process_id}'
    )
  # stop_signal handles SIGTERM; JAX's preemption service would consume it.
  jax.config.update('jax_enable_preemption_service', False)
  try:
    jax.distributed.initialize(
      coordinator,
      num_processes,
      process_id,
      cluster_detection_method='deactivate' if coordinator else None,
      heartbeat_timeout_seconds=peer_timeout_seconds,
      shutdown_timeout_seconds=peer_timeout_seconds,
    )
  except ValueError as error:
    raise ValueError(
      f'cannot join the other processes: {error} Without a launcher that JAX '
      'knows, give coordinator, num_processes and process_id.'
    ) from error
  if count() > 1:
    watchdog.start(stall_seconds, f'process {index()} of {count()}')


def count() -> int:
  """Processes of the run."""
  return jax.process_count()


def index() -> int:
  """The number of this process."""
  return jax.process_index()


def is_main() -> bool:
  """Returns whether this process writes the files of the run."""
  return index() == 0


def own(size: int) -> slice:
  """The part of `size` prompts that this process decodes and verifies.

  Contiguous, as rows lie on the devices of a mesh whose axes sequence and
  tensor stay within a process.
  """
  return slice(size * index() // count(), size * (index() + 1) // count())


def has_own(layout: jax.sharding.Sharding, size: int) -> bool:
  """Returns whether the devices of this process hold its part, and no more.

  layout: of arrays whose first axis are `size` prompts.
  """
  shards: Any = layout.addressable_devices_indices_map((size,)).values()
  held = {place for (part,) in shards for place in range(size)[part]}
  return held == {*range(size)[own(size)]}


def read(tree: Any) -> Any:
  """jax.device_get of what all processes compute; waits for all of them."""
  with watchdog.waiting():
    return jax.device_get(tree)


def fetch_rows(tree: Any, rows: slice) -> Any:
  """Host copies of some rows of arrays that every process holds whole.

  Another slice on every process: only these rows leave the device.
  """
  if count() == 1:
    return jax.tree.map(lambda x: x[rows], read(tree))

  def cut(x):
    whole = x.addressable_data(0)
    # The mesh in force has devices of other processes, which cut other rows.
    alone = jax.sharding.Mesh(np.asarray([whole.device]), ('own',))
    with jax.set_mesh(alone):
      return jax.lax.slice_in_dim(whole, rows.start, rows.stop)

  return read(jax.tree.map(cut, tree))


def gather(value: Any) -> list[Any]:
  """The JSON-able values of all processes, in their order; all must call it.

  Numbers come back as they were: JSON keeps every bit of a float.
  """
  if count() == 1:
    return [value]
  if _alone:
    raise RuntimeError('gather inside on_main would wait for ever')
  message = json.dumps([index(), value, _proposals]).encode()
  found = sorted(map(json.loads, _exchange(message)), key=lambda x: x[0])
  _, values, proposals = zip(*found, strict=True)
  for mine in reversed(proposals):  # the lowest process wins
    _agreed.update(mine)
  return list(values)


def agreed(name: str, proposal: Any) -> Any:
  """The proposal of the lowest process with one, as of the last exchange.

  A proposal (None: no proposal) is sent with the next `gather`, so that no
  further communication is needed and all processes get the same answer.
  """
  if count() == 1:
    return proposal
  if proposal is not None:
    _proposals[name] = proposal
  return _agreed.get(name)


def on_main(function: Callable[[], Any]) -> Any:
  """The JSON-able result of `function()` on process 0, on all processes.

  All processes wait until it has returned. What it raises is raised on all
  processes: as it is on process 0, as ValueError or RuntimeError elsewhere.
  """
  global _alone
  if count() == 1:
    return function()
  result, error = None, None
  if is_main():
    _alone = True
    try:
      result = function()
    except Exception as raised:
      error = raised
    finally:
      _alone = False
  text = None if error is None else f'process 0: {error}'
  result, text, is_value = gather(
    [result, text, isinstance(error, ValueError)]
  )[0]
  if error is not None:
    raise error
  if text is not None:
    raise (ValueError if is_value else RuntimeError)(text)
  return result


def put(tree: Any, layout: jax.sharding.Sharding) -> Any:
  """jax.device_put of host arrays that are equal on all processes.

  For a layout over several processes device_put itself would compare the
  arrays, with a collective for each of them.
  """
  if layout.is_fully_addressable:
    return jax.device_put(tree, layout)
  return jax.tree.map(lambda x: _put(x, layout), tree)


def _put(x, layout):
  if isinstance(x, jax.Array) and not x.is_fully_addressable:
    return jax.device_put(x, layout)  # only a change of layout
  if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
    data = _put(jax.random.key_data(x), layout)
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
  with jax.transfer_guard('allow'):  # as explicit as device_put
    host = np.asarray(x)
    return jax.make_array_from_callback(host.shape, layout, lambda i: host[i])


def end_all(exit_code: int) -> None:
  """Ends this process at once after an error, and thereby the others.

  A normal exit would wait for processes that wait for this one. Does nothing
  with one process.
  """
  if not jax.distributed.is_initialized() or count() == 1:
    return
  traceback.print_exc()
  print(
    f'process {index()} of {count()} ends, and the others with it; the newest '
    'checkpoint is valid: run the same command again',
    file=sys.stderr,
  )
  sys.stderr.flush()
  sys.stdout.flush()
  os._exit(exit_code)


def _exchange(message: bytes) -> list[bytes]:
  """One all-gather, and a second one if a message is longer than the buffer."""
  global _capacity
  while True:
    buffer = np.zeros(_HEADER + _capacity, np.uint8)
    buffer[:_HEADER] = np.array([len(message)], '<u4').view(np.uint8)
    part = np.frombuffer(message[:_capacity], np.uint8)
    buffer[_HEADER : _HEADER + len(part)] = part
    with jax.transfer_guard('allow'), watchdog.waiting():
      found = multihost_utils.process_allgather(buffer)
    sizes = np.ascontiguousarray(found[:, :_HEADER]).view('<u4')[:, 0]
    if sizes.max() <= _capacity:
      return [
        row[_HEADER : _HEADER + size].tobytes()
        for row, size in zip(found, sizes, strict=True)
      ]
    _capacity = 1 << int(sizes.max() - 1).bit_length()
