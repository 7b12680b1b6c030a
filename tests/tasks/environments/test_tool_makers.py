"""Code, queries and search as tools."""

import importlib.util
import json
import math
import pathlib
import pickle
import sqlite3
import sys
import time

import jax
import pytest

from rl_jax.tasks import QuestionAnswer, WithTools
from rl_jax.tasks.environments import (
  hidden_files,
  tool_calls,
  tool_functions,
  tool_makers,
)
from rl_jax.verification import sandbox
from rl_jax.verification.session_host import check_reply
from rl_jax.verification.sessions import SessionPool
from rl_jax.worlds import Arithmetic

PATH = pathlib.Path(__file__).parents[2] / 'tools' / 'attack_turns.py'
SPEC = importlib.util.spec_from_file_location('attack_turns', PATH)
attacks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(attacks)


@pytest.fixture(name='database', scope='module')
def _database(tmp_path_factory):
  path = tmp_path_factory.mktemp('sql') / 'cities.db'
  with sqlite3.connect(path) as database:
    database.execute('create table city (name text, people integer)')
    rows = [(f'city{n}', n) for n in range(30)]
    database.executemany('insert into city values (?, ?)', rows)
  database.close()
  return path


def call(name, **arguments):
  return (
    f'{tool_calls.OPEN}{json.dumps({"name": name, "arguments": arguments})}'
  )


def test_a_database_answers_and_is_not_changed(database):
  """Rows as JSON, at most 20; what writes or never ends is an error."""
  sql = tool_makers.sql(str(database))
  assert sql('select name from city where people = 7') == '{"name": "city7"}'
  many = sql('select people from city').split('\n')
  assert len(many) == 21 and many[-1] == '...'
  for query in ('delete from city', 'select nothing from city', 'no query'):
    with pytest.raises(tool_functions.ToolError, match='sql: OperationalError'):
      tool_functions.call(sql, {'query': query})
  endless = (
    'with recursive n(x) as (select 1 union all select x + 1 from n) '
    'select count(*) from n'
  )
  with pytest.raises(sqlite3.OperationalError, match='interrupted'):
    sql(endless)
  assert sql('select count(*) as n from city') == '{"n": 30}'
  with pytest.raises(FileNotFoundError, match='sql:nowhere.db'):
    tool_makers.sql('nowhere.db')


def test_columns_of_one_name_are_all_told(database):
  sql = tool_makers.sql(str(database))
  found = sql('select a.name, b.name, 1 as "name:1" from city a, city b')
  assert found.split('\n')[1] == (
    '{"name": "city0", "name:1": "city1", "name:1:1": 1}'
  )


@pytest.mark.parametrize('query', ['vacuum into {!r}', 'attach {!r} as other'])
def test_a_query_writes_no_other_file(database, tmp_path, query):
  sql = tool_makers.sql(str(database))
  query = query.format(str(tmp_path / 'new.db'))
  with pytest.raises(tool_functions.ToolError, match='authori[sz]'):
    tool_functions.call(sql, {'query': query})
  assert not list(tmp_path.iterdir())


def test_tools_are_made_anew_in_a_worker(database):
  """Functions that a maker has made are not part of the pickled task."""
  task = WithTools(
    task=Arithmetic(digits=1), functions=(f'sql:{database}',), shown='text'
  )
  other = pickle.loads(pickle.dumps(task))
  assert other == task
  episode = other.make(other.example('train', 0))
  asked = call('sql', query='select name from city where people = 3')
  assert 'city3' in episode.step(asked).observation


def test_calls_have_prices(database):
  """Two calls of 2.5 and 1; the answer costs nothing."""
  functions = (f'sql:{database}', 'calculator')
  task = WithTools(
    task=Arithmetic(digits=1),
    functions=functions,
    prices={'sql': 2.5},
    shown='text',
  )
  assert task.code_modules == () and task.traits.needs_workers
  one = task.make(task.example('train', 0))
  one.reset(0)
  text = call('sql', query='select max(people) as most from city')
  text += f'{tool_calls.CLOSE}{call("calculator", expression="1 + 1")}'
  reply = one.step(text)
  assert reply.rewards == {'calls': 2, 'cost': 3.5}
  assert '{"most": 29}' in reply.observation and '2' in reply.observation
  assert one.step('3').rewards['cost'] == 0
  with pytest.raises(ValueError, match=r"prices: \['sq'\] are none of"):
    WithTools(
      task=Arithmetic(), functions=functions, prices={'sq': 1}, shown='text'
    )


@pytest.mark.slow
def test_code_runs_in_the_sandbox():
  """Output and last value are returned; errors are for the policy."""
  assert tool_makers.python('x = 6\nprint("a")\nx * 7') == 'a\n42'
  assert tool_makers.python('import math') == ''
  with pytest.raises(tool_functions.ToolError, match='ZeroDivisionError'):
    tool_functions.call(tool_makers.python, {'code': '1 / 0'})
  with pytest.raises(tool_functions.ToolError, match='python: '):
    tool_functions.call(tool_makers.python, {'code': 'import os; os._exit(0)'})


def test_code_runs_as_a_program():
  """Its name is __main__, its classes are found, and sets have one order."""
  code = """
import dataclasses, pickle
@dataclasses.dataclass
class Node:
  after: 'Node' = None
if __name__ == '__main__':
  print(type(pickle.loads(pickle.dumps(Node()))).__name__, set('abcdef'))
"""
  first, again = (tool_makers.python(code) for _ in range(2))
  assert first.startswith('Node {') and again == first


def answer_to(text, task):
  """The text that the policy reads after a turn."""
  one = task.make(task.example('train', 0))
  one.reset(0)
  return check_reply(one.step(text), 'step')['observation']


def with_tools(*functions, **fields):
  own = Arithmetic(digits=1)
  return WithTools(task=own, functions=functions, shown='text', **fields)


def test_all_calls_of_a_turn_share_its_time():
  """An endless one ends, and the later ones say that no time is left."""
  task = with_tools('python', 'calculator', turn_seconds=0.5)
  endless = call('python', code='while True: pass') + tool_calls.CLOSE
  found = answer_to(3 * endless + call('calculator', expression='1'), task)
  assert found.count('error: python: ValueError: the code ended by time') == 1
  assert found.count('error: no time left: all calls of a turn have 0.5') == 3
  found = answer_to(call('calculator', expression='1 + 1'), task)
  assert '\n2\n' in found


def test_queries_end_with_their_turn(database):
  """Whatever they do: the values of SQLite are limited, and so is its time."""
  task = with_tools(f'sql:{database}', turn_seconds=0.5)
  big = call('sql', query='select length(randomblob(999999999))')
  found = answer_to(5 * (big + tool_calls.CLOSE), task)
  assert found.count('error: sql: DataError: string or blob too big') == 5
  slow = "select length(printf('%.*c', 999999999, 'x'))"
  found = answer_to(3 * (call('sql', query=slow) + tool_calls.CLOSE), task)
  assert found.count('error: sql: TimeoutError: the query took 0.') == 1
  assert found.count('error: no time left') == 2
  assert '30' in answer_to(call('sql', query='select count(*) from city'), task)


def slow_tool(seconds: float) -> str:
  """Waits."""
  time.sleep(seconds)
  return f'{tool_functions.time_left(5.0):.0f} {tool_functions.time_left()}'


def test_a_users_tool_can_ask_how_much_time_is_left():
  task = with_tools(slow_tool, turn_seconds=0.3)
  assert '0 0.' in answer_to(call('slow_tool', seconds=0.1), task)
  found = answer_to(
    2 * (call('slow_tool', seconds=0.4) + tool_calls.CLOSE), task
  )
  assert '0 0.0' in found and found.count('no time left') == 1
  assert tool_functions.time_left() == math.inf


def test_the_time_of_a_turn_must_be_within_that_of_a_call(database):
  """Else a policy could void its own row."""
  assert with_tools('calculator', slow_tool).traits.reward_seconds == 0.0
  for function in ('python', f'sql:{database}'):
    task = with_tools(function)
    assert task.traits.reward_seconds == 7.0
    with pytest.raises(ValueError, match='must exceed 7.0'):
      SessionPool(task, 1, 7.0)
    assert with_tools(function, turn_seconds=1.0).traits.reward_seconds == 2.0


def test_no_turn_costs_its_row(tmp_path):
  """Calls that take long, need much, or end processes; make test-attacks."""
  texts = attacks.turns(2)
  found, same = attacks.attack(list(texts.values()), str(tmp_path), 0.3)
  assert [one.kind for one in found] == ['ok'] * len(texts)
  assert same and all('error: ' in x.reply['observation'] for x in found)


@pytest.mark.parametrize(
  ('missing', 'refused'),
  [
    ({}, False),
    ({'landlock': 'x'}, False),
    ({'namespaces': 'x'}, False),
    ({'landlock': 'x', 'namespaces': 'x'}, True),
    ({'landlock': 'x', 'mounts': 'x'}, True),
    ({'seccomp': 'x'}, True),
  ],
)
def test_code_needs_the_layers_that_hide_files(monkeypatch, missing, refused):
  """Tools that run code need them like tests of functions; others need none."""
  report = sandbox.Report((), 'exit', missing)
  monkeypatch.setattr(sandbox, 'run_calls', lambda *_: report)
  task = with_tools('calculator', 'python')
  if refused:
    with pytest.raises(RuntimeError, match='WithTools.require names.*task.req'):
      task.prepare()
    with_tools('python', require=()).prepare()
    with_tools('calculator').prepare()
  else:
    task.prepare()


@pytest.mark.parametrize('layer', ['landlock', 'namespaces'])
def test_code_cannot_read_the_files_of_its_task(tmp_path, layer):
  """By one layer only: data, databases, and modules of the user."""
  for folder in (tmp_path, *tmp_path.parents[:2]):
    folder.chmod(0o755)
  limits = sandbox.Limits(layers=(layer,))
  missing = sandbox.run_calls('', '', [], limits).missing
  if missing.keys() & {layer, 'mounts'}:
    pytest.skip(f'the kernel lacks {layer}')
  rows = tmp_path / 'problems.jsonl'
  rows.write_text('{"question": "What secret?", "answer": "6"}\n')
  own = tmp_path / 'my_hidden_tool.py'
  own.write_text('def fine(x: str):\n  """Says secret."""\n  return "secret"\n')
  path = tmp_path / 'data.db'
  with sqlite3.connect(path) as made:
    made.execute('create table secret (x integer)')
  made.close()
  task = WithTools(
    task=QuestionAnswer(sources={'train': str(rows)}),
    functions=('python', f'sql:{path}', f'{own}:fine'),
    shown='text',
    limits=limits,
  )
  for file in (rows, path, own):
    code = f"print(open({str(file)!r}, 'rb').read())"
    assert 'secret' not in answer_to(call('python', code=code), task)
    assert b'secret' in file.read_bytes()


def test_folders_of_data_sets_are_hidden(tmp_path):
  (tmp_path / 'a').mkdir()
  (tmp_path / 'a' / 'shard').write_text('x')
  own = QuestionAnswer(sources={'train': f'tfds:{tmp_path}@train[:90%]'})
  found = hidden_files.files_of(own)
  assert str(tmp_path / 'a' / 'shard') in found


def test_search_finds_the_text_with_the_words(tmp_path):
  """A line without a text is named."""
  pytest.importorskip('bm25s', reason="needs the extra 'search'")
  path = tmp_path / 'texts.jsonl'
  texts = ['the river Rhine', 'a mountain in Nepal', 'rivers of the north']
  path.write_text('\n'.join(json.dumps({'text': text}) for text in texts))
  search = tool_makers.search(str(path))
  with jax.transfer_guard('disallow'):  # no arrays of JAX in workers
    assert search('mountain', count=1) == texts[1]
  assert search('of a volcano') == 'nothing was found'
  bad = tmp_path / 'bad.jsonl'
  bad.write_text('{"text": "a"}\n{"words": 1}\n')
  with pytest.raises(ValueError, match='bad.jsonl:2: no field "text"'):
    tool_makers.search(str(bad))


def test_search_without_the_package_names_the_extra(monkeypatch, tmp_path):
  monkeypatch.setitem(sys.modules, 'bm25s', None)
  path = tmp_path / 'other.jsonl'
  path.write_text('{"text": "a"}')
  with pytest.raises(ImportError, match=r"'search'.*rl_jax\[search\]"):
    WithTools(
      task=Arithmetic(digits=1), functions=(f'search:{path}',), shown='text'
    )
