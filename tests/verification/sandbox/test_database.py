"""Queries that take long, need much or ask for more than reading."""

import os
import signal
import sqlite3

import pytest

from rl_jax.verification import child_processes
from rl_jax.verification.sandbox.database import Database

HEX = 'hex(zeroblob(400000))'


@pytest.fixture(name='database')
def _database(tmp_path):
  path = tmp_path / 'numbers.db'
  with sqlite3.connect(path) as made:
    made.execute('create table number (x integer, name text)')
    rows = [(n, 'é' * n) for n in range(30)]
    made.executemany('insert into number values (?, ?)', rows)
  made.close()
  database = Database(str(path))
  yield database
  database.close()


def test_rows_and_names(database):
  names, rows = database.answer('select x, name from number where x < 2', 10.0)
  assert names == ['x', 'name'] and rows == [[0, ''], [1, 'é']]
  assert len(database.answer('select * from number', 10.0)[1]) == 21
  assert database.answer("select x'6162'", 10.0)[1] == [["b'ab'"]]
  assert database.answer('pragma table_info(number)', 10.0)[1][1][1] == 'name'


@pytest.mark.parametrize(
  'query',
  [
    "select length(printf('%.*c', 999999999, 'x'))",
    f"select instr({HEX}, hex(zeroblob(200000)) || '1')",
  ],
)
def test_a_step_that_takes_long_ends_with_its_process(database, query):
  """SQLite cannot interrupt it; the next query is answered."""
  database.answer('select 0', 10.0)
  old = database._process.pid
  with pytest.raises(TimeoutError, match='took 0.5 seconds'):
    database.answer(query, 0.5)
  assert database.answer('select 1', 10.0)[1] == [[1]]
  new, alive = database._process.pid, child_processes.children()
  assert {old, new} & alive == {old, new} & child_processes.kept == {new}


@pytest.mark.parametrize(
  ('query', 'kind', 'words'),
  [
    ('select length(randomblob(999999999))', 'DataError', 'too big'),
    ('select length(zeroblob(1000001))', 'DataError', 'too big'),
    (f'select {HEX} || {HEX}', 'DataError', 'too big'),
    ("select replace(hex(zeroblob(99999)), '0', 'abcdefg')", 'Data', 'too big'),
    (f'select {HEX}', 'DataError', 'the result has 8'),
    ('select ' + ', '.join(900 * [HEX]), '', None),
    (
      'with recursive n(x) as (select hex(randomblob(400000)) union select '
      'hex(randomblob(400000)) from n) select count(*) from n',
      *('', None),
    ),
    ('pragma temp_store = file', 'DatabaseError', 'authori'),
    ('pragma hard_heap_limit = 1', 'DatabaseError', 'authori'),
    ("attach 'other.db' as other", 'DatabaseError', 'authori'),
    ("vacuum into 'other.db'", 'DatabaseError', 'authori'),
    ('select anything', 'OperationalError', 'no such column'),
    ('select 1; select 2', '', 'one statement'),
    ('select ' + 3000 * '(' + '1' + 3000 * ')', 'OperationalError', 'overflow'),
    ('\ud800', 'DatabaseError', 'surrogates'),
    ('\0', '', None),
  ],
)
def test_what_cannot_be_answered_is_an_error(
  database, tmp_path, query, kind, words
):
  """It costs only the query; no file is made."""
  with pytest.raises(Exception, match=words) as error:
    database.answer(query, 20.0)
  assert kind in type(error.value).__name__
  assert isinstance(error.value, sqlite3.Error | sqlite3.Warning | MemoryError)
  assert database.answer('select 1', 10.0)[1] == [[1]]
  assert [path.name for path in tmp_path.iterdir()] == ['numbers.db']


def test_a_lost_process_is_replaced(database):
  """One that died between two queries costs neither of them."""
  database.answer('select 1', 10.0)
  os.kill(database._process.pid, signal.SIGKILL)
  database._process.wait()
  assert database.answer('select 2', 10.0)[1] == [[2]]
