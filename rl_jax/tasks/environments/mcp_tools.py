"""Tools of a server that speaks the Model Context Protocol, as functions.

  # my_tools.py
  from rl_jax.tasks.environments import mcp_tools
  add = mcp_tools.tool('python my_server.py', 'add')

`WithTools(functions=('my_tools.py:add',))` then has it like a function of the
user's own: a configuration by itself starts no program. With the package `mcp`
such a server is

  # my_server.py
  from mcp.server.mcpserver import MCPServer
  server = MCPServer('numbers')

  @server.tool()
  def add(a: int, b: int = 2) -> int:
    '''Adds two numbers.'''
    return a + b

  server.run()

Calls of one process run at the same time if the task says that its turns may
(WithTools.workers='thread'), as far as the server answers them so.

What it writes to its standard error is not shown; the last line of it is quoted
when the server does not start or ends before it has answered.
"""

import asyncio
import atexit
from collections.abc import Callable
from concurrent import futures
import functools
import inspect
import math
import os
import shlex
import tempfile
import threading
from typing import Any

from rl_jax.tasks.environments import tool_functions
from rl_jax.verification import child_processes

_starting = threading.Lock()
_LOG_END = 4096  # bytes of its standard error that are read
_TYPES = {
  'string': str,
  'integer': int,
  'number': float,
  'boolean': bool,
  'array': list,
  'object': dict,
}


def tool(command: str, name: str) -> Callable[..., str]:
  """The tool of that name of the server that the command starts.

  The server runs once in every process that calls it, on its standard input and
  output, and ends with it. Names, types and texts of arguments are those of the
  tool's schema; the result is its text.

  Raises: ValueError if the server has no such tool, or for a type of argument
    that is not one of JSON. ImportError without the extra 'mcp'.
  """
  tools = {one.name: one for one in _server(command, os.getpid()).tools}
  if name not in tools:
    raise ValueError(f'{command}: no tool {name!r}, only {sorted(tools)}')
  found = tools[name]

  def call(**arguments: Any) -> str:
    # Of this process: a worker is a fork of the one that has made the tool.
    return _server(command, os.getpid()).call(name, arguments)

  parameters, lines = _parameters(found)
  about = ' '.join((found.description or name).split())
  call.__name__ = call.__qualname__ = name
  call.__doc__ = '\n'.join([about, '', 'Args:', *lines])
  # Read by inspect; typeshed does not know it.
  call.__signature__ = (  # pyrefly: ignore[missing-attribute]
    inspect.Signature(parameters)
  )
  call.__annotations__ = {one.name: one.annotation for one in parameters}
  # Before a turn: its seconds are for what the server does.
  tool_functions.starts(call, lambda: _server(command, os.getpid()))
  return call


def _parameters(found):
  """Parameters, required ones first, and lines of the docstring."""
  schema, lines, parameters = found.input_schema, [], []
  required = set(schema.get('required', ()))
  properties = schema.get('properties', {})
  for name in sorted(properties, key=lambda name: name not in required):
    one = properties[name]
    kinds = [kind for x in (one, *one.get('anyOf', ())) for kind in _kinds(x)]
    if len(kinds) != 1 or kinds[0] not in _TYPES:
      raise ValueError(
        f'tool {found.name}: argument {name} has the schema {one}: expected '
        f'one type of {", ".join(_TYPES)}'
      )
    optional = name not in required
    kind = _TYPES[kinds[0]]
    parameters.append(
      inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if optional else inspect.Parameter.empty,
        annotation=kind | None if optional else kind,
      )
    )
    if one.get('description'):
      lines.append(f'  {name}: {" ".join(one["description"].split())}')
  return parameters, lines


def _kinds(schema):
  """The types that a schema names, one or a list of them, without null."""
  found = schema.get('type', [])
  found = found if isinstance(found, list) else [found]
  return [kind for kind in found if kind != 'null']


def _server(command, process):
  """The running server of a process; threads that need it first start one."""
  with _starting:
    return _started(command, process)


@functools.cache
def _started(command, process):
  del process
  return _Server(command)


class _Server:
  """A server and the thread that talks to it."""

  def __init__(self, command: str):
    started: futures.Future = futures.Future()
    package = _package()
    # A file of the system: the server's process writes into it.
    self._log = tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace')
    main = self._talk(package, command, started)
    self.thread = threading.Thread(
      target=asyncio.run, args=(main,), daemon=True
    )
    with child_processes.keeping():
      self.thread.start()
      futures.wait([started])
    self._loop, self._client, self._ended, self.tools = started.result()
    atexit.register(self.end)

  async def _talk(self, package, command, started):
    program, *arguments = shlex.split(command)
    server = package.StdioServerParameters(command=program, args=arguments)
    try:
      streams = package.stdio_client(server, errlog=self._log)
      async with package.Client(streams) as client:
        ended, listed = asyncio.Event(), await client.list_tools()
        loop = asyncio.get_running_loop()
        started.set_result((loop, client, ended, listed.tools))
        await ended.wait()
    except Exception as error:
      if started.done():
        raise
      text = f'{command}: it did not start: {_reason(error)}{self._last_line()}'
      self._log.close()
      started.set_exception(ValueError(text))

  def _last_line(self) -> str:
    """Returns what the server has written to its standard error last, or ''."""
    self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - _LOG_END))
    lines = [line.strip() for line in self._log.read().splitlines()]
    last = [line for line in lines if line][-1:]
    return f'; its last line: {last[0]}' if last else ''

  def call(self, name: str, arguments: dict[str, Any]) -> str:
    """Raises ValueError with the text of the result if the tool failed.

    And TimeoutError at the end of what its turn may take.
    """
    asked = self._client.call_tool(name, arguments)
    asked = asyncio.run_coroutine_threadsafe(asked, self._loop)
    left = tool_functions.time_left()
    try:
      result = asked.result(None if left == math.inf else left)
    except futures.TimeoutError:
      asked.cancel()
      raise TimeoutError(f'{name} has not answered') from None
    except Exception as error:  # the server has ended, or broken the protocol
      text = f'{name}: {_reason(error)}{self._last_line()}'
      raise ValueError(text) from error
    texts = [getattr(part, 'text', None) for part in result.content]
    text = '\n'.join(text for text in texts if text is not None)
    if result.is_error:
      raise ValueError(text)
    return text

  def end(self) -> None:
    """Closes the server's input, at which it ends."""
    if not self._loop.is_closed():
      self._loop.call_soon_threadsafe(self._ended.set)
    self.thread.join(timeout=5)
    self._log.close()


def _reason(error: BaseException) -> str:
  """The first cause, of what the package's tasks raise together."""
  while isinstance(error, BaseExceptionGroup):
    error = error.exceptions[0]
  return str(error) or type(error).__name__


def _package():
  try:
    import mcp
  except ImportError as error:
    raise ImportError(
      "mcp_tools needs the extra 'mcp': pip install 'rl_jax[mcp]'"
    ) from error
  return mcp
