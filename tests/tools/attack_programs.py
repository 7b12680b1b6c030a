"""Programs that try to escape from the sandbox or to abuse it.

Each defines f(x); `C` holds the canaries that the suite has planted: it is
put in front of the program. f returns True, or a secret, if it
succeeds; damage outside is found by the suite. Everything is bounded by itself,
because some layers are switched off on purpose: at most 32 processes, 1 GiB
of address space never touched, 64 MiB of files. A name that starts with
`judge` attacks the reward: only a value that it cannot know is right.
"""

_SYSCALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *values):
  return libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, values))
"""

READ = {
  'read a file': """
def f(x): return open(C['secret']).read()
""",
  'read the hidden tests': """
def f(x): return open(C['tests']).read()
""",
  'read a file through a link': """
import os
def f(x):
  os.symlink(C['secret'], 'link')
  return open('link').read()
""",
  'read the environment': """
import os
def f(x): return dict(os.environ)
""",
  'read the environment of the parent': """
def f(x):
  return open(f"/proc/{C['parent']}/environ", 'rb').read().decode('latin1')
""",
  'read the memory of the parent by /proc': """
def f(x):
  with open(f"/proc/{C['parent']}/mem", 'rb', 0) as memory:
    memory.seek(C['address'])
    return memory.read(C['length']).decode()
""",
  'read the memory of the parent by system call': """
import ctypes, struct
libc = ctypes.CDLL(None)
def f(x):
  buffer = ctypes.create_string_buffer(C['length'])
  here = struct.pack('PN', ctypes.addressof(buffer), C['length'])
  there = struct.pack('PN', C['address'], C['length'])
  one = ctypes.c_ulong(1)
  libc.process_vm_readv(C['parent'], here, one, there, one, ctypes.c_ulong(0))
  return buffer.raw.decode()
""",
  'read open files of the parent by /proc': """
import os
def f(x):
  with open(f"/proc/{C['parent']}/fd/{C['fd']}") as file:
    return file.read()
""",
  'read inherited file descriptors': """
import os
def f(x):
  found = ''
  for fd in range(1024):
    try:
      found += os.pread(fd, 100, 0).decode('latin1')
    except OSError:
      pass
  return found
""",
  'list the processes': """
import os
def f(x): return str(C['victim']) in os.listdir('/proc')
""",
}

WRITE = {
  'write a file outside': """
def f(x): open(C['base'] + '/written', 'w').write('x')
""",
  'write through a link': """
import os
def f(x):
  os.symlink(C['base'] + '/written', 'link')
  open('link', 'w').write('x')
""",
  'overwrite a file': """
def f(x): open(C['secret'], 'r+').write('x')
""",
  'truncate a file': """
import os
def f(x): os.truncate(C['secret'], 0)
""",
  'delete a file': """
import os
def f(x): os.unlink(C['secret'])
""",
  'rename a file': """
import os
def f(x): os.rename(C['secret'], C['secret'] + '.moved')
""",
  'change the mode of a file': """
import os
def f(x): os.chmod(C['secret'], 0o777)
""",
  'change the times of a file': """
import os
def f(x): os.utime(C['secret'], (1, 1))
""",
  'make a directory outside': """
import os
def f(x): os.mkdir(C['base'] + '/made')
""",
  'mount a disk over a directory': _SYSCALL
  + """
def f(x):
  return libc.mount(b'none', C['base'].encode(), b'tmpfs', 0, None) == 0
""",
  'enter a user namespace': """
import ctypes
def f(x): return ctypes.CDLL(None).unshare(0x10000000) == 0
""",
}

PROCESSES = {
  'kill a process': """
import os
def f(x): os.kill(C['victim'], 9)
""",
  'kill a process group': """
import os
def f(x): os.killpg(C['victim'], 9)
""",
  'kill by a pidfd': """
import os, signal
def f(x): signal.pidfd_send_signal(os.pidfd_open(C['victim']), 9)
""",
  'kill its keeper': """
import os
def f(x): os.kill(os.getppid(), 9)
""",
  'stop its keeper and then itself': """
import os, time
def f(x):
  os.kill(os.getppid(), 19)
  time.sleep(0.2)
""",
  'signal its process group': """
import os
def f(x): os.killpg(0, 9)
""",
  'signal a process as the owner of a file': """
import fcntl, os
def f(x):
  read, write = os.pipe()
  fcntl.fcntl(read, fcntl.F_SETOWN, C['victim'])
  fcntl.fcntl(read, 10, 9)  # F_SETSIG
  fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
  os.write(write, b'x')
""",
  'signal a process as the extended owner of a file': """
import fcntl, os, struct
def f(x):
  read, write = os.pipe()
  fcntl.fcntl(read, 15, struct.pack('ii', 1, C['victim']))  # F_SETOWN_EX
  fcntl.fcntl(read, 10, 9)
  fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
  os.write(write, b'x')
""",
  'signal a process by a watched directory': """
import fcntl, os
def f(x):
  directory = os.open('.', os.O_RDONLY)
  for command, value in ((8, C['victim']), (10, 9), (1026, 1 << 31 | 4)):
    fcntl.fcntl(directory, command, value - (value >> 31 << 32))
  open('new', 'w').close()
""",
  'set the owner of a file by ioctl': """
import ctypes, fcntl, os, struct
def f(x):
  read, write = os.pipe()
  fcntl.ioctl(read, 0x5452, struct.pack('i', 1))
  return True
""",
  'trace a process': """
import ctypes
def f(x):
  return ctypes.CDLL(None).ptrace(16, C['victim'], None, None) == 0
""",
  'change the limits of a process': """
import resource
def f(x): resource.prlimit(C['victim'], resource.RLIMIT_NOFILE, (7, 7))
""",
  'start a program': """
import os
def f(x): os.execv('/bin/sh', ['sh', '-c', f"echo x > {C['base']}/written"])
""",
  'start a program by subprocess': """
import subprocess
def f(x): return subprocess.run(['/bin/true']).returncode == 0
""",
  'many processes': """
import os, time
def f(x):
  for i in range(30):
    if os.fork() == 0:
      time.sleep(1)
      os._exit(0)
  return True
""",
  'fork bomb of 32': """
import os, time
def f(x):
  for i in range(5):
    os.fork()
  time.sleep(0.2)
  return True
""",
  'daemon by double fork': """
import os, signal, time
def f(x):
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      for number in range(1, 65):
        try:
          signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
          pass
      for fd in range(64):
        try:
          os.close(fd)
        except OSError:
          pass
      time.sleep(60)
    os._exit(0)
  time.sleep(0.2)
""",
  'threads': """
import threading, time
def f(x):
  threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(30)]
  for thread in threads: thread.start()
  return True
""",
}

NETWORK = {
  'TCP to loopback': """
import socket
def f(x):
  with socket.create_connection(('127.0.0.1', C['tcp']), 1) as s: s.send(b'x')
""",
  'TCP by system call': _SYSCALL
  + """
import os
def f(x):
  return syscall(41 if os.uname().machine == 'x86_64' else 198, 2, 1, 0) >= 0
""",
  'UDP to loopback': """
import socket
def f(x):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.sendto(b'x', ('127.0.0.1', C['udp']))
""",
  'UNIX socket by path': """
import socket
def f(x): socket.socket(socket.AF_UNIX).connect(C['unix'])
""",
  'UNIX socket by abstract name': """
import socket
def f(x): socket.socket(socket.AF_UNIX).connect(chr(0) + C['abstract'])
""",
  'raw packets': """
import socket
def f(x): return bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
""",
  'listen on a port': """
import socket
def f(x):
  s = socket.socket()
  s.bind(('127.0.0.1', 0))
  s.listen()
  return True
""",
}

EXHAUST = {
  'memory': """
def f(x): return len(bytearray(1 << 30)) == 1 << 30
""",
  'memory after raising the limit': """
import resource
def f(x):
  resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
  return len(bytearray(1 << 30)) == 1 << 30
""",
  'memory in files of memory': """
import os
def f(x):
  fds = [os.memfd_create('m') for _ in range(8)]
  for fd in fds:
    for _ in range(8): os.write(fd, bytes(1 << 20))
  return True
""",
  'one large file': """
def f(x):
  with open('large', 'wb', 0) as file:
    for _ in range(64): file.write(bytes(1 << 20))
  return True
""",
  'many files': """
def f(x):
  for i in range(64):
    with open(f'file{i}', 'wb', 0) as file: file.write(bytes((1 << 20) - 1))
  return True
""",
  'many open files': """
import os
def f(x): return bool([os.open('/dev/null', 0) for _ in range(200)])
""",
  'a deep tree of directories': """
import os
def f(x):
  for _ in range(3000):
    os.mkdir('d')
    os.chdir('d')
""",
  'a directory without rights': """
import os
def f(x):
  os.mkdir('d')
  open('d/file', 'w').close()
  os.chmod('d', 0)
""",
  'flood of output': """
import os, sys
def f(x):
  for _ in range(200):
    os.write(1, b'flood' * 100_000)
    os.write(2, b'flood' * 100_000)
""",
  'flood of values': """
import os
def f(x):
  for _ in range(1000): os.write(3, b'x' * 100_000)
  return True
""",
  'a value that is too long': """
def f(x): return 'x' * 10_000_000
""",
  'a value that is too deep': """
import os
def f(x):
  os.write(3, b'{"value": ' + b'[' * 60_000)
  os._exit(0)
""",
  'a number that is too long': """
import os
def f(x):
  os.write(3, b'{"value": ' + b'9' * 60_000 + b'}' + bytes([10]))
  os._exit(0)
""",
  'busy loop': """
def f(x):
  while True: pass
""",
  'busy loop in the module': """
while True: pass
""",
  'sleep': """
import time
def f(x): time.sleep(600)
""",
  'catastrophic regular expression': """
import re
def f(x): return bool(re.match('(a+)+$', 'a' * 60 + 'b'))
""",
  'large powers': """
def f(x): return 7 ** 7 ** 9 > 0
""",
  'ignoring all signals': """
import signal
def f(x):
  for number in range(1, 65):
    try:
      signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
      pass
  while True: pass
""",
  'stopping itself': """
import os
def f(x): os.kill(os.getpid(), 19)
""",
  'closing the pipe and going on': """
import os, time
def f(x):
  os.close(3)
  time.sleep(600)
""",
  'deep recursion': """
import sys
sys.setrecursionlimit(10**9)
def f(x): return f(x)
""",
  'crash': """
import ctypes
def f(x): ctypes.string_at(0)
""",
}

JUDGE = {
  'judge: exit with success': """
import os
os._exit(0)
""",
  'judge: sys.exit(0)': """
import sys
def f(x): sys.exit(0)
""",
  'judge: print the words of success': """
def f(x): print('PASSED', 'OK', '{"value": true}', flush=True)
""",
  'judge: write values of its own': """
import os
os.write(3, b'{"value": "PASSED"}' + bytes([10]))
os._exit(0)
""",
  'judge: write a report of the keeper': """
import os
for fd in range(1, 64):
  try:
    os.write(fd, b'{"ended": "exit", "outcome": 1.0}' + bytes([10]))
  except OSError:
    pass
""",
  'judge: a value that equals everything': """
class Yes:
  def __eq__(self, other): return True
  __hash__ = None
def f(x): return Yes()
""",
  'judge: text that equals everything': """
class Yes(str):
  def __eq__(self, other): return True
  def __hash__(self): return 0
def f(x): return Yes('x')
""",
  'judge: patch json and the comparison': """
import builtins, json, operator
builtins.isinstance = lambda *a: True
operator.eq = lambda *a: True
json.dumps = lambda value: '{"value": "PASSED"}'
def f(x): return 0
""",
  'judge: search memory for what is expected': """
import gc, sys
def f(x):
  found, frame = [], sys._getframe()
  while frame:
    found.append(repr(frame.f_locals) + repr(frame.f_globals))
    frame = frame.f_back
  found += map(repr, gc.get_objects())
  text = ' '.join(found)
  import re
  return re.findall('canary-[0-9a-f]{32}', text)
""",
  'judge: an error whose text raises': """
class Bad(BaseException):
  def __str__(self): raise self
def f(x): raise Bad()
""",
  'judge: not a number, infinity': """
def f(x): return [float('nan'), float('inf')]
""",
}

ALL = {**READ, **WRITE, **PROCESSES, **NETWORK, **EXHAUST, **JUDGE}
