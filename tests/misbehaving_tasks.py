"""Reward functions that hang, raise, return bad values or exit; for workers."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from rl_jax.tasks.base import Task


@dataclasses.dataclass(frozen=True)
class Misbehaving(Task):
  """The response names the method that its reward call runs."""

  def num_prompts(self, split):
    """None: examples come from elsewhere."""
    return 0

  def example(self, split, index):
    """There is none."""
    raise IndexError(index)

  def reward(self, example, response):
    """Returns the components, unless the response asks it to misbehave."""
    if response.startswith('spawn '):
      child = subprocess.Popen(['sleep', '300'])
      with open(response.split()[1], 'w') as f:
        f.write(str(child.pid))
      time.sleep(300)
    if response.startswith('daemon '):
      _leave_a_daemon(response.split()[1])
    if response.startswith('leave '):
      _leave_a_child(response.split()[1])
    if response.startswith('noted '):
      return _noted(*response.split()[1:])
    action = getattr(self, response, None)
    if action is not None:
      return action()
    return {
      'outcome': float(response == example.answer),
      'length': len(response),
    }

  def quote(self):
    """Raises an error that quotes a long response."""
    raise ValueError('no number in ' + 'long response ' * 10_000)

  def names(self):
    """A component with a long name that is not a number."""
    return {'outcome': 1.0, 'x' * 100_000: 'one'}

  def short(self):
    """Leaves out a component."""
    return {'outcome': 1.0}

  def orphan(self):
    """Ends the process that starts the workers, and with it all of them."""
    os.kill(os.getppid(), signal.SIGKILL)
    self.hang()

  def hang(self):
    """Never returns, and uses no processor time."""
    while True:
      time.sleep(300)

  def spin(self):
    """Never returns, and uses the processor."""
    while True:
      pass

  def regex(self):
    """Exponential backtracking, which holds the lock of the interpreter."""
    return {'outcome': float(bool(re.match('(a+)+$', 'a' * 60 + 'b')))}

  def bomb(self):
    """Five generations of forks, then a busy loop in each of 32 processes."""
    for _ in range(5):
      os.fork()
    self.spin()

  def fork(self):
    """Forks, and returns in both processes."""
    os.fork()
    return {'outcome': 1.0}

  def twice(self):
    """Sends a reply for this very sample, and returns."""
    _send_reply(0, {'outcome': 1.0})
    return {'outcome': 1.0}

  def late(self):
    """Sends a second reply after the call has returned."""

    def send():
      return _send_reply(0, {'outcome': 1.0}, frame)

    frame = _frame()
    threading.Timer(0.2, send).start()
    return {'outcome': 1.0}

  def ahead(self):
    """Sends a reply for the next sample."""
    _send_reply(1, {'outcome': 1.0})
    return {'outcome': 1.0}

  def forged(self):
    """Sends a reply with a value that is not finite."""
    _send_reply(0, {'outcome': float('inf')})
    return {'outcome': 1.0}

  def nested(self):
    """Sends a reply that a parser of JSON cannot read."""
    _frame()['connection'].send_bytes(b'[' * 500_000)
    return {'outcome': 1.0}

  def raise_error(self):
    """Raises an Exception."""
    raise KeyError('a bug in the reward function')

  def leave(self):
    """SystemExit is not an Exception."""
    sys.exit(3)

  def vanish(self):
    """Ends the process without a message."""
    os._exit(0)

  def nan(self):
    """Not a number."""
    return {'outcome': float('nan')}

  def infinite(self):
    """An infinity in another component."""
    return {'outcome': 1.0, 'length': float('inf')}

  def digits(self):
    """A whole number that is larger than all floats."""
    return {'outcome': -(10**400)}

  def huge(self):
    """Finite in float64 only."""
    return {'outcome': 1e300}

  def number(self):
    """Not a dict."""
    return 1.0

  def text(self):
    """A component that is a string."""
    return {'outcome': '1.0'}

  def vector(self):
    """A component with a shape."""
    import numpy as np

    return {'outcome': np.ones(2)}

  def nameless(self):
    """No outcome."""
    return {'format': 1.0}

  def scalar(self):
    """NumPy scalars and booleans are numbers."""
    import numpy as np

    return {'outcome': np.float32(0.5), 'format': np.bool_(True)}

  def flood(self):
    """A megabyte of output, and a good reward."""
    sys.stdout.write('x' * 1_000_000)
    os.write(2, b'y' * 100_000)
    return {'outcome': 1.0}

  def oversized(self):
    """A reply that is too long."""
    return {'outcome': 1.0, 'x' * 2_000_000: 1.0}

  def hoard(self):
    """More memory than is allowed."""
    return {'outcome': float(len(bytearray(1 << 40)))}


def _frame():
  """The variables of the worker's main loop."""
  frame = sys._getframe()
  while 'connection' not in frame.f_locals:
    frame = frame.f_back
  return dict(frame.f_locals)


def _send_reply(ahead, components, frame=None):
  """Writes to the worker's connection as its main loop does."""
  frame = frame or _frame()
  reply = [frame['number'] + ahead, 'ok', components, '']
  frame['connection'].send_bytes(json.dumps(reply).encode())


def _leave_a_child(pid_file):
  """Two generations of children, which outlive the call."""
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      with open(pid_file, 'w') as f:
        f.write(str(os.getpid()))
    time.sleep(300)
    os._exit(0)
  while not (os.path.exists(pid_file) and os.path.getsize(pid_file)):
    time.sleep(0.01)


def _leave_a_daemon(pid_file):
  """A grandchild in its own session; the call hangs."""
  if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid == 0:
      time.sleep(300)
    with open(pid_file, 'w') as f:
      f.write(str(pid))
    os._exit(0)
  time.sleep(300)


@dataclasses.dataclass(frozen=True)
class Unloadable(Misbehaving):
  """Its library is missing."""

  def prepare(self):
    """Called once, before any worker exists."""
    raise ImportError('this task needs the package nowhere')


@dataclasses.dataclass(frozen=True)
class NeverLoaded(Misbehaving):
  """Its library takes its time."""

  def prepare(self):
    """Called once, before any worker exists."""
    time.sleep(300)


@dataclasses.dataclass(frozen=True)
class Modules(Misbehaving):
  """Reports whether a worker has imported JAX."""

  def reward(self, example, response):
    """outcome is 1 if jax is loaded."""
    return {'outcome': float('jax' in sys.modules)}


def _noted(path, name):
  """Writes the name of a call to a file; 'slow' then hangs the first time."""
  with open(path, 'a+') as file:
    file.write(f'{name}\n')
    file.seek(0)
    names = file.read().split()
  if name == 'slow' and names.count(name) == 1:
    time.sleep(300)
  return {'outcome': float(len(names))}
