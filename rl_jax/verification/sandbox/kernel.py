"""Confinement of a process by the Linux kernel, through ctypes.

Every function raises OSError where the kernel, or the container around it,
does not permit it. Standard library only: this file is imported by the process
that continues to run untrusted code.
"""

import ctypes
import os
import platform
import struct

_NEW_USER, _NEW_PID, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_NEW_IPC, _NEW_MOUNTS = 0x08000000, 0x00020000
_PDEATHSIG, _DUMPABLE, _SUBREAPER, _NO_NEW_PRIVS, _SECCOMP = 1, 4, 36, 38, 22
NOBODY = 65534

# Calls that are refused (EPERM): x86-64 and arm64 numbers; None: no such call.
_REFUSED = {
  # network and other communication
  'socket': (41, 198),
  'socketpair': (53, 199),
  'connect': (42, 203),
  'bind': (49, 200),
  'mq_open': (240, 180),
  'shmget': (29, 194),
  'semget': (64, 190),
  'msgget': (68, 186),
  # processes and threads
  'clone': (56, 220),
  'fork': (57, None),
  'vfork': (58, None),
  'clone3': (435, 435),
  'execve': (59, 221),
  'execveat': (322, 281),
  # signals to, reading of, and settings of processes
  'kill': (62, 129),
  'tkill': (200, 130),
  'tgkill': (234, 131),
  'rt_sigqueueinfo': (129, 138),
  'rt_tgsigqueueinfo': (297, 240),
  'pidfd_open': (434, 434),
  'pidfd_getfd': (438, 438),
  'pidfd_send_signal': (424, 424),
  'ptrace': (101, 117),
  'process_madvise': (440, 440),
  'process_mrelease': (448, 448),
  'migrate_pages': (256, 238),
  'move_pages': (279, 239),
  'process_vm_readv': (310, 270),
  'process_vm_writev': (311, 271),
  'prlimit64': (302, 261),
  'setpriority': (141, 140),
  'ioprio_set': (251, 30),
  'sched_setparam': (142, 118),
  'sched_setscheduler': (144, 119),
  'sched_setattr': (314, 274),
  'sched_setaffinity': (203, 122),
  # changes of files that landlock does not see
  'chmod': (90, None),
  'fchmod': (91, 52),
  'fchmodat': (268, 53),
  'fchmodat2': (452, 452),
  'chown': (92, None),
  'lchown': (94, None),
  'fchown': (93, 55),
  'fchownat': (260, 54),
  'truncate': (76, 45),
  'utime': (132, None),
  'utimes': (235, None),
  'futimesat': (261, None),
  'utimensat': (280, 88),
  'setxattr': (188, 5),
  'lsetxattr': (189, 6),
  'fsetxattr': (190, 7),
  'removexattr': (197, 14),
  'lremovexattr': (198, 15),
  'fremovexattr': (199, 16),
  # namespaces, mounts, keys and other system interfaces
  'unshare': (272, 97),
  'setns': (308, 268),
  'mount': (165, 40),
  'umount2': (166, 39),
  'pivot_root': (155, 41),
  'chroot': (161, 51),
  'open_by_handle_at': (304, 265),
  'add_key': (248, 217),
  'request_key': (249, 218),
  'keyctl': (250, 219),
  'bpf': (321, 280),
  'perf_event_open': (298, 241),
  'userfaultfd': (323, 282),
  'io_uring_setup': (425, 425),
}
# Signals by files: whoever sets the owner of a file that reports what happens
# to it chooses the process and, by F_SETSIG, the signal. Landlock forbids it
# from version 6 of its interface on.
_FCNTL, _IOCTL = (72, 25), (16, 29)
_FCNTL_REFUSED = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY
_IOCTL_REFUSED = (0x5452, 0x8901, 0x8902)  # FIOASYNC, FIOSETOWN, SIOCSPGRP
_F_SETFL, _O_ASYNC = 4, 0x2000
_MACHINES = {'x86_64': (0, 0xC000003E), 'aarch64': (1, 0xC00000B7)}

# Landlock: rights on files by version of its interface.
_LANDLOCK_FS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_DEVICES = (1 << 6) | (1 << 11)  # character and block special files

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result, what):
  if result < 0:
    number = ctypes.get_errno()
    raise OSError(number, f'{what}: {os.strerror(number)}')
  return result


def _prctl(option, *values):
  padded = [ctypes.c_ulong(v) for v in (*values, 0, 0, 0, 0)[:4]]
  _checked(_libc.prctl(option, *padded), f'prctl {option}')


def _syscall(number, *values):
  padded = [ctypes.c_long(v) if isinstance(v, int) else v for v in values]
  return _libc.syscall(ctypes.c_long(number), *padded)


def adopt_orphans() -> None:
  """Descendants whose parent ends become children of this process."""
  _prctl(_SUBREAPER, 1)


def die_with_parent() -> None:
  """SIGKILL when the parent ends."""
  _prctl(_PDEATHSIG, 9)


def hide() -> None:
  """Unprivileged processes cannot inspect this process or its children."""
  _prctl(_DUMPABLE, 0)


def leave_root(readable: str) -> None:
  """root becomes the user nobody, if that user can read the file."""
  if os.geteuid() != 0:
    return
  os.setgroups([])
  os.setegid(NOBODY)
  os.seteuid(NOBODY)
  reachable = os.access(readable, os.R_OK, effective_ids=True)
  os.seteuid(0)
  os.setegid(0)
  if not reachable:
    raise OSError(f'the user nobody cannot read {readable}')
  os.setresgid(NOBODY, NOBODY, NOBODY)
  os.setresuid(NOBODY, NOBODY, NOBODY)
  _prctl(_DUMPABLE, 1)  # else its own /proc files would belong to root


def enter_namespaces() -> None:
  """Own users, network (without any interface) and IPC; children: own pids."""
  uid, gid = os.geteuid(), os.getegid()
  flags = _NEW_USER | _NEW_PID | _NEW_NET | _NEW_IPC
  _checked(_libc.unshare(flags), 'unshare')
  for name, text in (
    ('setgroups', 'deny'),
    ('uid_map', f'{NOBODY} {uid} 1'),
    ('gid_map', f'{NOBODY} {gid} 1'),
  ):
    with open(f'/proc/self/{name}', 'w') as file:
      file.write(text)


def mount_private_files(
  directory: str, num_bytes: int, hidden: list[str]
) -> None:
  """All files read-only, no /proc, and a small memory disk at `directory`.

  hidden: files that are empty.
  """
  _checked(_libc.unshare(_NEW_MOUNTS), 'unshare')
  private = 0x4000 | (1 << 18)  # MS_REC | MS_PRIVATE
  _mount(None, '/', None, private, None)
  attributes = struct.pack('=4Q', 1, 0, 0, 0)  # MOUNT_ATTR_RDONLY
  _checked(
    _syscall(442, -100, b'/', 0x8000, attributes, len(attributes)),
    'mount_setattr',
  )
  for path in hidden:
    if os.access(path, os.R_OK):  # else the code cannot read it either
      _mount(os.devnull, path, None, 0x1000, None)  # MS_BIND
  options = 0x2 | 0x4 | 0x8  # MS_NOSUID | MS_NODEV | MS_NOEXEC
  _mount('none', '/proc', 'tmpfs', options | 0x1, 'size=4k')
  _mount('none', directory, 'tmpfs', options, f'size={num_bytes},nr_inodes=256')


def _mount(source, target, kind, flags, data):
  def encode(text):
    return None if text is None else text.encode()

  result = _libc.mount(
    encode(source),
    target.encode(),
    encode(kind),
    ctypes.c_ulong(flags),
    encode(data),
  )
  _checked(result, f'mount {target}')


def restrict_files(
  readable: list[str], writable: list[str], highest_version: int
) -> None:
  """Landlock: nothing but these paths and what is below can be opened."""
  version = _checked(_syscall(444, None, 0, 1), 'landlock')
  version = min(version, highest_version)
  rights = (1 << _LANDLOCK_FS[min(version, 5)]) - 1
  net = 3 if version >= 4 else 0  # TCP bind and connect
  scope = 3 if version >= 6 else 0  # abstract sockets, signals
  size = 24 if version >= 6 else 16 if version >= 4 else 8
  attributes = struct.pack('=3Q', rights, net, scope)[:size]
  ruleset = _checked(_syscall(444, attributes, size, 0), 'landlock')
  read = _READ_FILE | _READ_DIR
  write = rights & ~(_EXECUTE | _DEVICES)
  rules = [(p, read) for p in readable] + [(p, write) for p in writable]
  for path, allowed in rules:
    if not os.path.exists(path):
      continue
    if not os.path.isdir(path):
      allowed &= _READ_FILE | _WRITE_FILE | (_TRUNCATE & rights)
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = struct.pack('=Qi', allowed, fd)
    _checked(_syscall(445, ruleset, 1, rule, 0), f'landlock {path}')
    os.close(fd)
  _prctl(_NO_NEW_PRIVS, 1)
  _checked(_syscall(446, ruleset, 0), 'landlock')
  os.close(ruleset)


def drop_privileges() -> None:
  """No capabilities now, and none by starting a program."""
  _prctl(_NO_NEW_PRIVS, 1)
  header = struct.pack('=Ii', 0x20080522, 0)
  _checked(_libc.capset(header, bytes(24)), 'capset')


def refuse_calls() -> None:
  """Seccomp: the calls of the tables above fail with EPERM."""
  if platform.machine() not in _MACHINES or struct.calcsize('P') != 8:
    raise OSError(f'no table of system calls for {platform.machine()}')
  column, architecture = _MACHINES[platform.machine()]
  code = _filter(column, architecture)
  program = b''.join(struct.pack('=HBBI', *line) for line in code)
  buffer = ctypes.create_string_buffer(program, len(program))
  filter_ = struct.pack('@HP', len(code), ctypes.addressof(buffer))
  filter_ = ctypes.create_string_buffer(filter_, len(filter_))
  _prctl(_NO_NEW_PRIVS, 1)
  _prctl(_SECCOMP, 2, ctypes.addressof(filter_))


def _filter(column, architecture):
  """Instructions (operation, jump if true, if false, operand)."""
  load, equal, above, has, give = 0x20, 0x15, 0x35, 0x45, 0x06
  second, third = 24, 32  # where the low halves of arguments are
  rows = [row[column] for row in _REFUSED.values()]
  code = [
    (load, 0, 0, 4),  # the architecture
    (equal, 0, 'kill', architecture),
    (load, 0, 0, 0),  # the number of the call
    (above, 'refuse', 0, 0x40000000),  # x32 has other numbers
    *(
      (equal, 'refuse', 0, n) for n in sorted(n for n in rows if n is not None)
    ),
    (equal, 'fcntl', 0, _FCNTL[column]),
    (equal, 0, 'allow', _IOCTL[column]),
    (load, 0, 0, second),
    *((equal, 'refuse', 0, n) for n in _IOCTL_REFUSED),
    (give, 0, 0, 0x7FFF0000),
  ]
  labels = {'allow': len(code) - 1, 'fcntl': len(code)}
  code += [
    (load, 0, 0, second),
    *((equal, 'refuse', 0, n) for n in _FCNTL_REFUSED),
    (equal, 0, 'allowed', _F_SETFL),
    (load, 0, 0, third),
    (has, 'refuse', 'allowed', _O_ASYNC),
    (give, 0, 0, 0x7FFF0000),
    (give, 0, 0, 0x00050001),
    (give, 0, 0, 0x80000000),
  ]
  end = len(code)
  labels |= {'allowed': end - 3, 'refuse': end - 2, 'kill': end - 1}

  def place(i, to):
    return labels[to] - i - 1 if isinstance(to, str) else to

  return [
    (operation, place(i, yes), place(i, no), operand)
    for i, (operation, yes, no, operand) in enumerate(code)
  ]
