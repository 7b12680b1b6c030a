"""Child processes of this one, and those that outlive the calls of a task.

Workers end what calls and episodes leave running, except what is `kept`.
"""

from collections.abc import Generator
import contextlib
import os
import sys

kept: set[int] = set()


def children() -> set[int]:
  """Process ids of the direct children of this process; Linux only."""
  found = set()
  for name in filter(str.isdigit, os.listdir('/proc')):
    try:
      with open(f'/proc/{name}/stat') as file:
        parent = file.read().rpartition(')')[2].split()[1]
    except OSError:
      continue  # it has ended
    if int(parent) == os.getpid():
      found.add(int(name))
  return found


def computes(pid: int) -> bool:
  """Returns whether a process or a descendant runs now; Linux only."""
  try:
    with open(f'/proc/{pid}/stat') as file:
      if file.read().rpartition(')')[2].split()[0] == 'R':
        return True
    with open(f'/proc/{pid}/task/{pid}/children') as file:
      return any(computes(int(one)) for one in file.read().split())
  except OSError:
    return False  # it has ended


@contextlib.contextmanager
def keeping() -> Generator[None]:
  """Lets what is started within live as long as this process, as servers do."""
  before = children() if sys.platform == 'linux' else set()
  yield
  if sys.platform == 'linux':
    kept.update(children() - before)
