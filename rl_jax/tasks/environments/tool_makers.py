"""Tools that come with the library: Python code, SQL and search in texts.

Each ends before the time of its turn does, see `tool_functions.limited`.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import json
import os
import pathlib

from rl_jax.tasks.environments import tool_functions
from rl_jax.verification import sandbox
from rl_jax.verification.sandbox import database

_ROWS = 20  # of an answer to a query
_QUERY_SECONDS = 3.0
_LEAST_SECONDS = 0.1  # to start anything
_PYTHON = """
import ast, contextlib, io, sys, types
def run(code):
  tree, printed = ast.parse(code), io.StringIO()
  module = sys.modules['__main__'] = types.ModuleType('__main__')
  names = module.__dict__
  last = [x for x in tree.body[-1:] if isinstance(x, ast.Expr)]
  tree.body = tree.body[: len(tree.body) - len(last)]
  with contextlib.redirect_stdout(printed):
    exec(compile(tree, '<code>', 'exec'), names)
    values = [eval(compile(ast.Expression(x.value), '<code>', 'eval'), names)
              for x in last]
  shown = [repr(value) for value in values if value is not None]
  return printed.getvalue() + ''.join(shown)
"""


def python(code: str) -> str:
  """Runs Python code; the result is what it prints and its last value.

  Args:
    code: lines of Python; only the standard library can be imported
  """
  return _run(code, sandbox.Limits(), ())


def python_hiding(
  paths: Sequence[str], limits: sandbox.Limits
) -> Callable[[str], str]:
  """The tool `python` with other limits; code cannot read the files."""

  @functools.wraps(python)
  def python_(code: str) -> str:
    return _run(code, limits, paths)

  if limits.packages:
    more = ' and '.join(('the standard library', *limits.packages))
    python_.__doc__ = f'{python.__doc__}'.replace(
      'only the standard library', f'only {more}'
    )
  return python_


def _run(code, limits, hidden):
  left = max(_LEAST_SECONDS, tool_functions.time_left(limits.wall_seconds))
  limits = dataclasses.replace(limits, wall_seconds=left)
  report = sandbox.run_calls(_PYTHON, 'run', [[code]], limits, hidden)
  (result,) = report.results or (None,)
  if result is None or report.ended != 'exit':
    raise ValueError(f'the code ended by {report.ended}')
  if result.error is not None:
    raise ValueError(result.error)
  return result.value


def sql(path: str) -> Callable[[str], str]:
  """The tool that queries the SQLite database of a file, read-only.

  Raises: FileNotFoundError if there is none.
  """
  place = pathlib.Path(path).expanduser().resolve()
  if not place.is_file():
    raise FileNotFoundError(f'sql:{path}: no such file')

  def sql(query: str) -> str:
    """Answers a query to the database, in JSON.

    Args:
      query: one SELECT statement of SQLite
    """
    left = tool_functions.time_left(_QUERY_SECONDS)
    names, rows = _database(str(place), os.getpid()).answer(query, left)
    names = _distinct(names)
    lines = [
      json.dumps(dict(zip(names, row, strict=True))) for row in rows[:_ROWS]
    ]
    return '\n'.join(lines + ['...'] * (len(rows) > _ROWS))

  return sql


@functools.cache
def _database(path, process):
  """The database of this process; workers are forks of the tool's maker."""
  del process
  return database.Database(path)


def _distinct(names: list[str]) -> list[str]:
  """'x', 'x:1', ... for columns of one name, of which JSON would keep one."""
  found: list[str] = []
  for name in names:
    spelled = itertools.chain(
      [name], (f'{name}:{n}' for n in itertools.count(1))
    )
    found.append(next(x for x in spelled if x not in found))
  return found


def search(path: str) -> Callable[..., str]:
  """The tool that finds texts of a JSONL file (field `text`), by BM25.

  Raises: FileNotFoundError; ValueError naming a line without a text.
    ImportError without the extra 'search'.
  """
  texts = _texts(path)
  ranked(texts, '', 1)

  def search(query: str, count: int = 3) -> str:
    """Finds the texts that share most words with a query.

    Args:
      query: words
      count: of texts, at most 10
    """
    found = ranked(texts, query, max(1, min(count, 10)))
    return '\n\n'.join(texts[n] for n in found) or 'nothing was found'

  return search


def ranked(texts: tuple[str, ...], query: str, count: int) -> list[int]:
  """Numbers of at most `count` texts that share words with a query, best first.

  Raises: ImportError without the extra 'search'.
  """
  index, tokens = _index(texts)
  words = tokens(query, show_progress=False)
  if not any(words.ids):  # which would be logged
    return []
  most = min(count, len(texts))
  (places,), (scores,) = index.retrieve(
    words,
    k=most,
    show_progress=False,
    backend_selection='numpy',  # its default is JAX where that is installed
  )
  return [int(n) for n, x in zip(places, scores, strict=True) if x > 0]


@functools.cache
def _texts(path):
  texts = []
  with open(pathlib.Path(path).expanduser(), encoding='utf-8') as lines:
    for number, line in enumerate(lines, 1):
      row = json.loads(line)
      if not isinstance(row, dict) or not isinstance(row.get('text'), str):
        raise ValueError(f'{path}:{number}: no field "text"')
      texts.append(row['text'])
  return tuple(texts)


@functools.cache
def _index(texts):
  """(the index of texts, the function that makes words)."""
  try:
    import bm25s
  except ImportError as error:
    raise ImportError(
      "search by BM25 needs the extra 'search': pip install 'rl_jax[search]'"
    ) from error
  index = bm25s.BM25()
  index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
  return index, bm25s.tokenize
