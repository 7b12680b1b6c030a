"""MCP servers, TextWorld and Aviary: with stubs, or with the packages."""

from concurrent import futures
import dataclasses
import pathlib
import pickle
import sqlite3
import sys
import threading
import time
import types

import pytest

from rl_jax import user_modules
from rl_jax.tasks import Aviary, RecordedWalks, TextWorld, WithTools
from rl_jax.tasks.environments import mcp_tools, tool_functions
from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification.sessions import Request, SessionPool
from rl_jax.worlds import Arithmetic

STUBS = str(pathlib.Path(__file__).parents[2] / 'stubs')
SERVER = '''
import asyncio, os
from mcp.server.mcpserver import MCPServer
server = MCPServer('numbers')
@server.tool()
def add(a: int, b: int = 2) -> int:
  """Adds
  two numbers."""
  return a + b
inside = 0
@server.tool()
async def meet(count: int) -> str:
  """Waits until so many call it."""
  global inside
  inside += 1
  while inside < count:
    await asyncio.sleep(0.01)
  return f'process {os.getpid()}'
server.run()
'''


@pytest.fixture(name='served')
def _served(stub):
  stub('mcp')
  yield
  mcp_tools._started.cache_clear()


def test_a_tool_of_a_server_is_a_function(served):
  """Schema, checked arguments, results and errors."""
  add = mcp_tools.tool('program --flag', 'add')
  assert tool_functions.schema(add)['function'] == {
    'name': 'add',
    'description': 'Adds two.',
    'parameters': {
      'type': 'object',
      'properties': {
        'a': {'type': 'integer', 'description': 'the first'},
        'b': {'type': 'integer'},
      },
      'required': ['a'],
    },
  }
  found = tool_functions.call(add, {'a': 3})
  assert found == "add [('a', 3)]\nadd [('a', 3)]"
  for arguments, text in (
    ({'a': 'x'}, "a = 'x' is no integer"),
    ({'a': 1}, r"ValueError: add \[\('a', 1\)\]"),
  ):
    with pytest.raises(tool_functions.ToolError, match=text):
      tool_functions.call(add, arguments)


def test_servers_and_tools_that_do_not_fit_are_named(served):
  for command, name, text in (
    ('program', 'sub', r"no tool 'sub', only \['add', 'meet', 'odd'\]"),
    ('program', 'odd', 'tool odd: argument x has the schema'),
    (
      'broken',
      'add',
      'broken: it did not start: no such program; its last line: '
      "ModuleNotFoundError: No module named 'numbers_'$",
    ),
  ):
    with pytest.raises(ValueError, match=text):
      mcp_tools.tool(command, name)


@pytest.mark.parametrize(
  ('kinds', 'expected'),
  [
    (['string', 'null'], str | None),
    (['integer'], int | None),
    (['string', 'integer'], None),
    ([], None),
  ],
)
def test_types_of_arguments_may_be_lists(kinds, expected):
  properties = {'x': {'type': kinds}}
  found = types.SimpleNamespace(
    name='odd', input_schema={'properties': properties}
  )
  if expected is None:
    with pytest.raises(ValueError, match='tool odd: argument x has the schema'):
      mcp_tools._parameters(found)
    return
  (one,), _ = mcp_tools._parameters(found)
  assert one.annotation == expected


def test_a_server_ends_with_its_process(served):
  server = mcp_tools._server('program', 0)
  for _ in range(2):  # the second time at the end of the process
    server.end()
    assert not server.thread.is_alive()
  assert len(server._client.server.ended) == 1


def test_the_start_of_a_server_is_no_part_of_a_turn(
  served, tmp_path, monkeypatch
):
  """It starts at the reset, or before the turn in a process without one.

  Its start takes longer than a turn may.
  """
  (tmp_path / 'my_mcp.py').write_text(
    'from rl_jax.tasks.environments import mcp_tools\n'
    'add = mcp_tools.tool("program", "add")\n'
  )
  reference = user_modules.reference(f'{tmp_path}/my_mcp.py:add')
  own = WithTools(
    task=Arithmetic(digits=1),
    functions=(reference,),
    shown='text',
    turn_seconds=0.2,
  )
  call = '<tool_call>{"name": "add", "arguments": {"a": 5}}'
  begun, start = [], mcp_tools._Server

  def slow(command):
    begun.append(command)
    time.sleep(0.3)
    return start(command)

  monkeypatch.setattr(mcp_tools, '_Server', slow)
  mcp_tools._started.cache_clear()
  episode = own.make(own.example('train', 0))
  episode.reset(0)
  assert begun == ['program']
  assert "add [('a', 5)]" in episode.step(call).observation
  mcp_tools._started.cache_clear()  # as in another process
  assert "add [('a', 5)]" in episode.step(call).observation
  assert begun == 2 * ['program']


def test_a_real_server_that_ends_is_quoted(tmp_path):
  """Before the first call, and in one."""
  pytest.importorskip('mcp', reason="needs the extra 'mcp'")
  (tmp_path / 'server.py').write_text('import numbers_of_mine\n')
  command = f'{sys.executable} {tmp_path}/server.py'
  with pytest.raises(ValueError, match="last line: .* 'numbers_of_mine'"):
    mcp_tools.tool(command, 'add')
  text = SERVER.replace(
    'return a + b',
    'import os, sys; print("no numbers left", file=sys.stderr); os._exit(1)',
  )
  (tmp_path / 'ending.py').write_text(text)
  add = mcp_tools.tool(f'{sys.executable} {tmp_path}/ending.py', 'add')
  with pytest.raises(ValueError, match='add: .*; its last line: no numbers le'):
    add(a=1)


def test_a_real_server(tmp_path):
  """The server gives a tool of a task, in a file of the user's."""
  pytest.importorskip('mcp', reason="needs the extra 'mcp'")
  (tmp_path / 'server.py').write_text(SERVER)
  command = f'{sys.executable} {tmp_path}/server.py'
  (tmp_path / 'my_mcp.py').write_text(
    'from rl_jax.tasks.environments import mcp_tools\n'
    f'add = mcp_tools.tool({command!r}, "add")\n'
  )
  reference = user_modules.reference(f'{tmp_path}/my_mcp.py:add')
  own = WithTools(
    task=Arithmetic(digits=1), functions=(reference,), shown='text'
  )
  example = own.example('train', 0)
  call = '<tool_call>{"name": "add", "arguments": {"a": 5}}'
  with SessionPool(own, 1, 60.0) as pool:
    for number in range(2):  # the server outlives the episodes of a round
      for actions in ((), (call,), (call, '7')):
        request = Request((number, 0), example, 0, actions)
        (answer,) = pool.ask([request])
        assert answer.kind == 'ok'
        if actions == (call,):
          assert '\n7\n' in answer.reply['observation']


def meeting(tmp_path, command, count, **fields):
  """The texts that `count` episodes of one process read of a tool that waits
  until all of them call it.
  """
  (tmp_path / 'my_meeting.py').write_text(
    'from rl_jax.tasks.environments import mcp_tools\n'
    f'meet = mcp_tools.tool({command!r}, "meet")\n'
  )
  reference = user_modules.reference(f'{tmp_path}/my_meeting.py:meet')
  own = WithTools(
    task=Arithmetic(digits=1), functions=(reference,), shown='text', **fields
  )
  example = own.example('train', 0)
  call = f'<tool_call>{{"name": "meet", "arguments": {{"count": {count}}}}}'
  with SessionPool(own, 1, 60.0) as pool:
    for actions in ((), (call,)):
      rows = range(count)
      answers = pool.ask([Request((0, n), example, 0, actions) for n in rows])
      assert [one.kind for one in answers] == ['ok'] * count
  return [one.reply['observation'] for one in answers]


def test_calls_of_a_process_are_with_its_server_at_once(
  served, tmp_path, monkeypatch
):
  """Eight episodes of one process meet in one server."""
  monkeypatch.syspath_prepend(STUBS)  # for the worker
  said = meeting(tmp_path, 'program', 8, workers='thread', turn_seconds=30.0)
  assert len(set(said)) == 1 and "('servers', 1)" in said[0]


def test_calls_of_a_process_are_with_a_real_server_at_once(tmp_path):
  """The answers name one process of a server."""
  pytest.importorskip('mcp', reason="needs the extra 'mcp'")
  (tmp_path / 'server.py').write_text(SERVER)
  command = f'{sys.executable} {tmp_path}/server.py'
  said = meeting(tmp_path, command, 8, workers='thread', turn_seconds=30.0)
  assert len(set(said)) == 1 and 'process ' in said[0]


def test_threads_that_need_a_server_first_start_one(served):
  """The others wait for it."""
  package, count = sys.modules['mcp'], 8
  before, barrier = len(package.started), threading.Barrier(count)

  def needed(number):
    del number
    barrier.wait()
    return mcp_tools._server('program', 1)

  with futures.ThreadPoolExecutor(count) as pool:
    servers = set(pool.map(needed, range(count)))
  assert len(servers) == 1 and len(package.started) == before + 1


@pytest.mark.parametrize('function', ['python', 'sql:{}'])
def test_tools_that_need_a_process_are_refused_in_threads(tmp_path, function):
  database = tmp_path / 'data.sqlite'
  sqlite3.connect(database).close()
  functions = ('calculator', function.format(database))
  with pytest.raises(ValueError, match=r"workers = 'thread' with \['(py|sql)"):
    WithTools(task=Arithmetic(), functions=functions, workers='thread')
  traits = WithTools(
    task=Arithmetic(), functions=('calculator',), workers='thread', shown='text'
  ).traits
  assert (traits.workers, traits.global_random) == ('thread', False)


def test_a_text_world(stub, tmp_path):
  """Games are written once; commands, rewards, states."""
  package = stub('textworld')
  task = TextWorld(folder=str(tmp_path), rooms=3)
  example = task.example('train', 0)
  assert task.example('train', 0) == example
  assert package.written == [(3, 4, seed_of(example))]
  assert len(list(tmp_path.iterdir())) == 2
  episode = task.make(example)
  first = episode.reset(seed_of(example))
  assert first.observation == 'Take the lamp.\n-= Room =-\nA lamp is here.\n'
  wrong = episode.step(' sing ')
  assert wrong.observation == 'You sing.\n' and wrong.state == first.state
  nothing = {'outcome': 0.0, 'reward': 0.0, 'progress': 0.0}
  assert wrong.rewards == nothing | {'invalid': 1.0}
  near = episode.step('look')  # of two commands one is left
  assert near.rewards == nothing | {'progress': 0.5, 'invalid': 0.0}
  assert episode.solution == ('take lamp',)
  last = episode.step('take  lamp\n')
  won = {'outcome': 1.0, 'reward': 0.5, 'progress': 0.5, 'invalid': 0.0}
  assert last.rewards == won
  assert last.done and last.action == 'take lamp' and last.state != first.state
  listed = TextWorld(folder=str(tmp_path), rooms=3, commands=True)
  told = listed.make(example).reset(seed_of(example)).observation
  assert told.endswith('A lamp is here.\nYou can: look; take lamp\n')


@pytest.mark.parametrize(
  'text', ['save', 'Quit', r'\help', 'look. quit', 'undo', 'look then save']
)
def test_the_interpreter_obeys_no_policy(stub, tmp_path, text):
  """It would write files, end the game, or wait for its own user."""
  stub('textworld')
  task = TextWorld(folder=str(tmp_path))
  example = task.example('train', 0)
  episode = task.make(example)
  episode.reset(seed_of(example))
  reply = episode.step(text)
  assert reply.observation == 'That is no command.\n' and not reply.done
  assert reply.rewards['invalid'] == 1.0 and reply.action == ''
  assert episode.step('take lamp').done


def test_recorded_walks_through_a_text_world(stub, tmp_path):
  """Without noise the game's solution; with it any command, and a cut."""
  stub('textworld')
  game = TextWorld(folder=str(tmp_path), reward_weights={'progress': 1.0})
  task = RecordedWalks(task=game, noise=0.0, num_recorded=4)
  walks = task.recorded(task.example('train', 0))
  assert len(walks) == 4 and {walk.reward for walk in walks} == {1.0}
  assert {walk.turns for walk in walks} == {
    (('look', 'You look.\n'), ('take lamp', ''))
  }
  assert not any(walk.truncated for walk in walks)
  noisy = dataclasses.replace(task, noise=1.0, turns=1, num_recorded=20)
  walks = noisy.recorded(task.example('train', 0))
  assert {walk.turns for walk in walks} == {
    (('look', ''),),
    (('take lamp', ''),),
  }
  for walk in walks:
    assert walk.truncated == (walk.reward == 0.5)


def test_themes_are_games_of_their_own(stub, tmp_path):
  """Written with the grammar that is asked for, to other files."""
  package = stub('textworld')
  paths = set()
  for theme in ('house', 'basic'):
    task = TextWorld(folder=str(tmp_path), theme=theme)
    example = task.example('train', 0)
    paths.add(task.path(seed_of(example)))
    assert package.themes[-1] == theme
  assert len(paths) == 2
  with pytest.raises(ValueError, match="TextWorld.theme = 'castle'"):
    TextWorld(theme='castle')


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Game .* is not fully supported')
def test_a_real_text_world(tmp_path):
  """Written twice it is the same game; its own solution wins it."""
  textworld = pytest.importorskip(
    'textworld', reason="needs the extra 'textworld'"
  )
  told = []
  for name in ('a', 'b'):
    task = TextWorld(folder=str(tmp_path / name), commands=True)
    example = task.example('train', 0)
    episode = task.make(example)
    told.append(episode.reset(seed_of(example)))
  assert told[0] == told[1]
  game = textworld.Game.load(
    str(task.path(seed_of(example)).with_suffix('.json'))
  )
  replies = [episode.step(command) for command in game.metadata['walkthrough']]
  assert replies[-1].done and replies[-1].rewards['outcome'] == 1.0
  for name in ('reward', 'progress'):
    assert sum(reply.rewards[name] for reply in replies) == pytest.approx(1.0)
  episode.close()


def test_aviary():
  """The package's own example: text, a wrong call, calls, the end."""
  pytest.importorskip('aviary', reason="needs the extra 'aviary'")
  task = pickle.loads(pickle.dumps(Aviary()))
  task.prepare()
  episode = task.make(task.example('validation', 1))
  first = episode.reset(0).observation
  assert '"name": "print_story"' in first
  assert first.endswith('\n\nWrite a 5 word story via print_story\n')
  assert episode.step('Hm.').observation.startswith('No tool calls received.')
  wrong = episode.step('<tool_call>{"name": "cast_int", "arguments": [3]}')
  assert wrong.observation == 'error: arguments are no object\n'
  assert wrong.rewards == {'outcome': 0.0, 'reward': 0.0, 'invalid': 1.0}
  call = '<tool_call>{{"name": "{}", "arguments": {{"{}": {}}}}}</tool_call>'
  both = call.format('cast_int', 'x', 3.7) + call.format(
    'cast_float', 'x', '"2"'
  )
  reply = episode.step(both)
  assert reply.calls == 2 and not reply.done
  assert reply.observation == ''.join(
    f'<tool_response>\n{x}\n</tool_response>\n' for x in ('3', '2.0')
  )
  last = episode.step(call.format('print_story', 'story', '"once"'))
  assert last.done
  assert last.rewards == {'outcome': 1.0, 'reward': 1.0, 'invalid': 0.0}
  episode.close()


WORLDS = """
class Worlds:
  def __init__(self, count):
    self.count = count
  def __len__(self):
    return self.count
  def get_new_env_by_idx(self, place):
    return place
"""


def test_a_data_set_of_the_users(monkeypatch, tmp_path):
  """Splits follow each other; one that is too short is an error."""
  package = types.ModuleType('aviary')
  package.core = types.ModuleType('aviary.core')
  monkeypatch.setitem(sys.modules, 'aviary', package)
  monkeypatch.setitem(sys.modules, 'aviary.core', package.core)
  (tmp_path / 'my_worlds.py').write_text(WORLDS)
  fields = {'dataset': f'{tmp_path}/my_worlds.py:Worlds', 'num_train': 5}
  fields |= {'num_held_out': 2, 'options': {'count': 9}}
  task = Aviary(**fields)
  places = [
    task.environment(task.example(split, index))
    for split, index in (('train', 4), ('validation', 0), ('test', 1))
  ]
  assert places == [4, 5, 8] and task.code_modules == ('my_worlds',)
  with pytest.raises(ValueError, match='Worlds has 8 environments, less than'):
    Aviary(**{**fields, 'options': {'count': 8}}).prepare()


@pytest.mark.parametrize(
  ('package', 'call'),
  [
    ('mcp', lambda: mcp_tools.tool('program', 'add')),
    ('textworld', lambda: TextWorld().prepare()),
    ('aviary.core', lambda: Aviary().prepare()),
  ],
)
def test_without_the_package_the_extra_is_named(monkeypatch, package, call):
  monkeypatch.setitem(sys.modules, package, None)
  extra = package.partition('.')[0]
  with pytest.raises(ImportError, match=rf'rl_jax\[{extra}\]'):
    call()
