"""Episodes of every adapter continue in new processes as if nothing
happened.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import signal
import sqlite3
import sys

import pytest

from rl_jax import user_modules
from rl_jax.tasks import (
  Aviary,
  GymnasiumText,
  MemoryWindow,
  MiniGrid,
  OpenSpiel,
  Program,
  TextArena,
  TextWorld,
  WithTools,
)
from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification import session_host
from rl_jax.verification.sessions import Request, SessionPool
from rl_jax.worlds import Arithmetic, KeyDoor

TESTS = pathlib.Path(__file__).parents[2]


def call(name, **arguments):
  return f'<tool_call>{json.dumps({"name": name, "arguments": arguments})}'


# What is done, until the episode ends.
ACTIONS = {
  'gymnasium': ('right', 'jump', 'down', 'right'),
  'textarena': ('[A C]', '[A B]', '[C B]'),
  'open_spiel': ('p', 'b', 'p'),
  'mini_grid': ('left', 'forward', 'pickup', 'forward'),
  'textworld': ('look', 'inventory', 'look'),
  'aviary': ('Hm.', 'Hm?', call('print_story', story='once')),
  'mcp': (call('add', a=5), call('add', a=1), '7'),
  'sql': (call('sql', query='select 1'), '7'),
  'search': (call('search', query='river'), '7'),
  'calculator': (call('calculator', expression='2 * 3'), '7'),
  'draws': (call('draw'), call('draw'), '7'),
  'program': ('1', '2'),
  'memory': ('left', 'up', 'down', 'right'),
  'keydoor': ('left', 'up', 'down', 'right'),
}
OWN = '''
import random
import sys
import numpy as np
from rl_jax.tasks.environments import mcp_tools

add = mcp_tools.tool(f'{{sys.executable}} {folder}/server.py', 'add')

def draw() -> str:
  """Draws two numbers."""
  return f'{{random.random()}} {{np.random.random()}}'
'''
SERVER = '''
from mcp.server.mcpserver import MCPServer
server = MCPServer('numbers')
@server.tool()
def add(a: int, b: int = 2) -> int:
  """Adds."""
  return a + b
server.run()
'''


def with_tool(function):
  return WithTools(
    task=Arithmetic(digits=1), functions=(function,), shown='text'
  )


def make_tasks(folder):
  """The tasks whose package is installed, or has a stand-in."""
  (folder / 'server.py').write_text(SERVER)
  (folder / 'own_tools.py').write_text(OWN.format(folder=folder))
  (folder / 'texts.jsonl').write_text('{"text": "a river"}\n{"text": "a"}')
  sqlite3.connect(folder / 'some.db').close()
  tasks = {
    'gymnasium': GymnasiumText(
      words=('left', 'down', 'right', 'up'), options={'is_slippery': True}
    ),
    'textarena': TextArena(),
    'open_spiel': OpenSpiel(),
    'mini_grid': MiniGrid(),
    'textworld': TextWorld(folder=str(folder / 'worlds')),
    'aviary': Aviary(),
    'mcp': with_tool(f'{folder}/own_tools.py:add'),
    'sql': with_tool(f'sql:{folder}/some.db'),
    'calculator': with_tool('calculator'),
    'draws': with_tool(f'{folder}/own_tools.py:draw'),
    'program': Program(
      task=Arithmetic(digits=1),
      agent=user_modules.reference(f'{TESTS}/agents.py:twice'),
      chat=False,
    ),
    'memory': MemoryWindow(KeyDoor(), turns=1),
    'keydoor': KeyDoor(),
  }
  if importlib.util.find_spec('bm25s'):
    tasks['search'] = with_tool(f'search:{folder}/texts.jsonl')
  return tasks


def play(pool, requests, killed):
  """All replies to ACTIONS by name; killed: before each call."""
  said, left = {name: [] for name in requests}, dict(requests)
  while left:
    for pid in pool.worker_pids() if killed else ():
      os.kill(pid, signal.SIGKILL)
    for name, answer in zip(left, pool.ask(list(left.values())), strict=True):
      said[name].append((answer.kind, answer.detail, answer.reply))
    for name, request in list(left.items()):
      (_, _, reply), done = said[name][-1], len(request.actions)
      if not reply or reply['done'] or done == len(ACTIONS[name]):
        del left[name]
        continue
      left[name] = dataclasses.replace(
        request,
        actions=(*request.actions, ACTIONS[name][done]),
        before=(*request.before, session_host.fingerprint(reply)),
      )
  return said


@pytest.fixture(scope='module', name='played')
def _played(packages, tmp_path_factory):
  """The warnings by name, without kills and with them."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(TESTS))
    import adapters

    task = adapters.Adapters(make_tasks(tmp_path_factory.mktemp('own')))
    examples = {name: task.first(name) for name in task.tasks}
    with SessionPool(task, 1, 60.0) as pool:
      rounds = []
      for number, killed in enumerate((False, True)):
        requests = {
          name: Request((number, row), example, seed_of(example))
          for row, (name, example) in enumerate(examples.items())
        }
        rounds.append(play(pool, requests, killed))
    sys.modules.pop('adapters')
  return rounds


@pytest.mark.parametrize('name', ACTIONS)
def test_a_replay_is_the_episode(played, name):
  """E0: all is said again with kill -9 before every call; none has failed."""
  whole, killed = played
  if name not in whole:
    pytest.skip(f'the package of {name} is not installed')
  assert [kind for kind, _, _ in whole[name]] == ['ok'] * len(whole[name])
  assert len(whole[name]) > 2 or whole[name][-1][-1]['done']
  assert killed[name] == whole[name]
