"""A world with one tool, which ends it, and what worlds are made of."""

import types


class Message(types.SimpleNamespace):
  """The text."""


class ToolCall(types.SimpleNamespace):
  """A call: a function's name and arguments."""


class ToolRequestMessage(Message):
  """With tool calls."""

  tool_calls = ()


class Tool(types.SimpleNamespace):
  """A function and its name."""

  @classmethod
  def from_function(cls, function):
    """A tool of a function with a docstring."""
    info = types.SimpleNamespace(name=function.__name__)

    def dump(mode, by_alias):
      return {'name': function.__name__, 'mode': mode}

    return cls(info=info, function=function, model_dump=dump)


class Environment:
  """With tools that take a state."""

  default_no_tool_calls_response = (
    [Message(content='No tool calls received.')],
    *(0.0, False, False),
  )

  async def exec_tool_calls(self, said, state, handle_tool_exc):
    """Their results, in order."""
    assert handle_tool_exc
    told, known = [], {one.info.name: one.function for one in self.tools}
    for call in said.tool_calls:
      name, arguments = call.function['name'], call.function['arguments']
      text = f'Invalid tool call: {name}'
      if name in known:
        text = await known[name](**arguments, state=state)
      told.append(Message(content=text, tool_call_id=call.id))
    return told

  async def close(self):
    """Nothing."""


class _World:
  """Says how often it was spoken to; a call of print_story is right."""

  async def reset(self):
    """(messages, tools)."""
    self.steps = 0

    def dump(mode, by_alias):
      return {'name': 'print_story', 'mode': mode}

    told = [Message(content='Write a story')]
    return told, [types.SimpleNamespace(model_dump=dump)]

  async def step(self, said):
    """(messages, reward, done, truncated)."""
    self.steps += 1
    if not getattr(said, 'tool_calls', ()):
      return [Message(content=f'{self.steps}: no call')], 0.0, False, False
    (call,) = said.tool_calls
    told = Message(content=str(call.function['arguments']), tool_call_id='0')
    return [told], 1.0, True, False

  async def close(self):
    """Nothing."""


class TaskDataset:
  """One that is without end."""

  @classmethod
  def from_name(cls, name, **options):
    """The data set of a name."""
    assert name == 'dummy' and not options
    return cls()

  def get_new_env(self):
    """A world."""
    return _World()
