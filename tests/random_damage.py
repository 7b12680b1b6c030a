"""Random damage to what comes from outside, and the limits of a test of it.

The same examples every time. Loaded by tests beside it, which are not a
package.
"""

import contextlib
import copy
import itertools
import json
import os
import resource
import signal
import sys
import warnings

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SECONDS = 30  # of an example: where nothing ends, not a benchmark
MORE_BYTES = 4 << 30  # of address space, beyond what the process has
_NUMBER = itertools.count()


class Endless(BaseException):
  """No library catches it."""


@contextlib.contextmanager
def bounded():
  """Ends what takes longer than SECONDS or MORE_BYTES; warnings pass."""

  def end(*_):
    raise Endless

  old = signal.signal(signal.SIGALRM, end)
  limits = resource.getrlimit(resource.RLIMIT_AS)
  if sys.platform == 'linux':
    most = _address_space() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
  signal.alarm(SECONDS)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      yield
  finally:
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
    resource.setrlimit(resource.RLIMIT_AS, limits)


def _address_space():
  with open('/proc/self/statm') as file:
    return int(file.read().split()[0]) * resource.getpagesize()


def outcome(function, *args):
  """The result, or None after a ValueError with a readable message."""
  try:
    return function(*args)
  except ValueError as error:
    assert str(error)
    return None


# What a program that writes files gets wrong, and what an attacker gets right.
NUMBERS = st.one_of(
  st.integers(-3, 70),
  st.sampled_from([2**31, 2**63, 10**30, 10**400, 0.5, 1e308]),
  st.floats(),
)
TEXTS = st.one_of(
  st.text(max_size=8),
  st.sampled_from(['', '\0', '\u0661', '²', '\ud800', '{' * 300, '../x']),
)
VALUES = st.recursive(
  st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
  lambda x: st.lists(x, max_size=3) | st.dictionaries(TEXTS, x, max_size=3),
  max_leaves=6,
)


@st.composite
def damaged(draw, data):
  """Bytes of which a few are replaced, removed, doubled or cut."""
  for _ in range(draw(st.integers(0, 3))):
    at = draw(st.integers(0, len(data)))
    end = at + draw(st.sampled_from([0, 0, 1, 4, 8, 10**9]))
    new = draw(st.binary(max_size=9) | st.sampled_from([b'', data[at:end] * 2]))
    data = data[:at] + new + data[end:]
  return data


def places(tree, path=()):
  """The paths of all values in a JSON tree."""
  yield path
  if isinstance(tree, (dict, list)):
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
      yield from places(tree[key], (*path, key))


@st.composite
def changed(draw, text, values=VALUES):
  """A JSON text in which some values are others, or gone."""
  tree = json.loads(text)
  for _ in range(draw(st.integers(1, 2))):
    path = draw(st.sampled_from(list(places(tree))))
    new = copy.deepcopy(draw(values))  # it may be changed next
    if not path:
      tree = new
      continue
    node = tree
    for key in path[:-1]:
      node = node[key]
    if draw(st.integers(0, 5)):
      node[path[-1]] = new
    else:
      del node[path[-1]]
  return json.dumps(tree).encode()


def new_path(directory, name):
  """A path that no other example has."""
  return os.path.join(directory, f'{next(_NUMBER)}{name}')


def written(directory, name, data):
  """The path of a new file with these bytes."""
  path = new_path(directory, name)
  with open(path, 'wb') as file:
    file.write(data)
  return path


def run(made, holds, count, directory):
  """Runs `count` examples of a strategy, the same every time."""

  @settings(
    max_examples=count,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
  )
  @given(made)
  def check(example):
    with bounded():
      holds(str(directory), example)

  check()
