"""Disks that are full."""

import contextlib
import resource

import pytest


@pytest.fixture(scope='session')
def file_size_limit():
  """(bytes) -> within it, the kernel fails every write beyond them."""

  @contextlib.contextmanager
  def file_size_limit(limit):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
      yield
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, before)

  return file_size_limit
