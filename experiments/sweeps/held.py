"""The locks of several work directories, for runs that continue together."""

from collections.abc import Generator, Sequence
import contextlib
import resource

from absl import logging

from rl_jax.runs import lock
from rl_jax.runtime.writer import Writer


@contextlib.contextmanager
def those_free(workdirs: Sequence[str]) -> Generator[dict[str, Writer]]:
  """Holds the directories that no other process holds, until the end.

  Gives the right to write in each of them.
  Those that another process holds are named in a warning.

  Raises:
    lock.HeldError: others hold all of them.
  """
  _allow_files(len(workdirs))
  with contextlib.ExitStack() as stack:
    free: dict[str, Writer] = {}
    refused = []
    for workdir in workdirs:
      try:
        held = lock.Lock(workdir)
      except lock.HeldError as error:
        refused.append(error)
      else:
        stack.callback(held.release)
        free[workdir] = held.writer
    if not free and refused:
      raise refused[0]
    for error in refused:
      logging.warning('left to another process: %s', error)
    yield free


def _allow_files(count):
  """Each lock is an open file; often no more than 1,024 are allowed."""
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  if count > soft // 2:
    more = soft + count
    more = more if hard == resource.RLIM_INFINITY else min(more, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
