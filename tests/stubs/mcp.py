"""Stands in for mcp: a server with a tool that adds, and one that is odd.

A third one waits until it is called by so many at the same time.
"""

import asyncio
import types

_SCHEMA = {
  'properties': {
    'b': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]},
    'a': {'type': 'integer', 'description': 'the\nfirst'},
  },
  'required': ['a'],
}
_COUNT = {'properties': {'count': {'type': 'integer'}}, 'required': ['count']}
started = []  # in this process


class Client:
  """A running server."""

  def __init__(self, server):
    self.server, self.inside = server, 0
    started.append(server.command)

  async def __aenter__(self):
    if self.server.command == 'broken':
      raise OSError('no such program')
    return self

  async def __aexit__(self, *error):
    self.server.ended.append(error)

  async def list_tools(self):
    """All of them."""
    wrong = {'properties': {'x': {'type': 'null'}}}
    names = types.SimpleNamespace
    tools = [
      names(name='add', description='Adds\n two.', input_schema=_SCHEMA),
      names(name='odd', description=None, input_schema=wrong),
      names(name='meet', description='Meets.', input_schema=_COUNT),
    ]
    return names(tools=tools)

  async def call_tool(self, name, arguments):
    """1 is not a number that it can add."""
    if name == 'meet':
      self.inside += 1
      while self.inside < arguments['count']:
        await asyncio.sleep(0.01)
      arguments = {'servers': len(started)}
    part = types.SimpleNamespace(text=f'{name} {sorted(arguments.items())}')
    other = types.SimpleNamespace(data='of an image')
    return types.SimpleNamespace(
      content=[part, other, part], is_error=arguments.get('a') == 1
    )


def stdio_client(server, errlog):
  """The server; what it says on its standard error goes to errlog."""
  server.log = errlog
  if server.command == 'broken':
    errlog.write(
      "Traceback:\nModuleNotFoundError: No module named 'numbers_'\n\n"
    )
    errlog.flush()
  return server


class StdioServerParameters:
  """The command and environment of a server."""

  def __init__(self, command, args):
    self.command, self.args, self.ended = command, args, []
