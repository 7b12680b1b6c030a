"""The program that `Database` starts: answers queries to a file, read-only.

Started as `python -P -s -S -B query_runner.py FILE`: a JSON text on each line
of stdin is a query, a line of JSON on stdout its answer: {"names", "rows"} or
{"kind", "error"}. Imports the standard library only: with -S there are no
packages.
"""

import contextlib
import json
import os
import pathlib
import resource
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel  # noqa: E402

del sys.path[0]

ROWS = 20  # of an answer; one more shows that there are others
STEPS = 10_000_000  # of SQLite's machine
VALUE_BYTES = 1_000_000  # of a text, a blob or a row
_MEMORY_BYTES = 1 << 29  # of the process
_ANSWER_CHARACTERS = 200_000
# What looks at a schema; others change settings.
_PRAGMAS = ('table_info', 'table_xinfo', 'table_list', 'index_list')
_PRAGMAS += ('index_info', 'index_xinfo', 'foreign_key_list')


def main() -> None:
  """Answers until stdin ends."""
  place = pathlib.Path(sys.argv[1])
  with contextlib.suppress(OSError, AttributeError):  # only Linux has it
    kernel.die_with_parent()
  with contextlib.suppress(ValueError, OSError):  # not to be had everywhere
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
  for line in sys.stdin:
    try:
      found = _answer(place, json.loads(line))
    except Exception as error:
      found = {'kind': type(error).__name__, 'error': str(error)}
    text = json.dumps(found, default=str)
    if len(text) > _ANSWER_CHARACTERS:
      error = f'the result has {len(text)} characters'
      text = json.dumps({'kind': 'DataError', 'error': error})
    sys.stdout.write(text + '\n')
    sys.stdout.flush()


def _answer(place, query):
  address = f'{place.as_uri()}?mode=ro'
  with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
    database.execute('pragma temp_store = memory')  # not the disk
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    database.set_authorizer(_reads)
    steps = iter(range(STEPS // 1000))
    database.set_progress_handler(lambda: next(steps, None) is None, 1000)
    found = database.execute(query)
    names = [column[0] for column in found.description or ()]
    return {'names': names, 'rows': found.fetchmany(ROWS + 1)}


def _reads(action, name, *_):
  """Other files are refused: ATTACH and VACUUM INTO would write them."""
  refused = action == sqlite3.SQLITE_ATTACH or (
    action == sqlite3.SQLITE_PRAGMA and name not in _PRAGMAS
  )
  return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


if __name__ == '__main__':
  main()
