"""Search by a shared server: many queries in one request over HTTP.

  POST URL  {"queries": [TEXT, ...], "topk": 3, "return_scores": true}
  answer    {"result": [[{"document": {"contents": TEXT}, "score": X}, ...]]}

with one list of documents for each query. The first line of `contents` is the
title. The protocol is that of PeterGriffinJin/Search-R1, retrieval_server.py;
experiments.tools.retriever answers it from a file, by BM25.
"""

from collections.abc import Callable, Sequence
import functools
import json
import pathlib
from typing import Any
import urllib.error
import urllib.request

from rl_jax.tasks.environments import tool_functions, tool_makers

TOPK = 3
_SECONDS = 30.0
_LEAST_SECONDS = 0.1
_HTTP = ('http://', 'https://')


def retrieve(place: str) -> Callable[[str], str]:
  """The tool that asks a retriever.

  place: the URL of a server, or a JSONL file of documents {"contents": TEXT}
  that is searched here, by BM25 (extra 'search').

  Raises: ValueError for another place.
  """
  if not place.startswith((*_HTTP, '/')) and not place.endswith('.jsonl'):
    raise ValueError(
      f"'retrieve:{place}': expected the http:// address of a server, or a "
      '.jsonl file of documents'
    )

  def retrieve(query: str) -> str:
    """Finds passages about a query.

    Args:
      query: words
    """
    (found,) = ask(place, [query], TOPK)
    return passages(found)

  return retrieve


def ask(
  place: str, queries: Sequence[str], topk: int
) -> list[list[dict[str, Any]]]:
  """Documents of each query, best first, by one request.

  Raises: ConnectionError if the server does not answer in time, or answers
    something else; FileNotFoundError for a file that is missing.
  """
  if not place.startswith(_HTTP):
    return search(place, queries, topk)
  body = {'queries': list(queries), 'topk': topk, 'return_scores': True}
  request = urllib.request.Request(
    place,
    json.dumps(body).encode(),
    {'Content-Type': 'application/json'},
  )
  seconds = max(_LEAST_SECONDS, tool_functions.time_left(_SECONDS))
  try:
    with urllib.request.urlopen(request, timeout=seconds) as answer:
      return _result(json.load(answer), len(queries))
  except (urllib.error.URLError, OSError, ValueError) as error:
    raise ConnectionError(f'{place} did not answer: {error}') from error


def check(place: str) -> None:
  """Asks for nothing in particular.

  Raises: ConnectionError or FileNotFoundError naming the place.
  """
  ask(place, ['test'], 1)


def search(
  path: str, queries: Sequence[str], topk: int
) -> list[list[dict[str, Any]]]:
  """The same from a JSONL file of documents, by BM25."""
  documents = _documents(path)
  texts = tuple(one['contents'] for one in documents)
  return [
    [
      {'document': documents[n], 'score': 1.0 / (place + 1)}
      for place, n in enumerate(tool_makers.ranked(texts, query, topk))
    ]
    for query in queries
  ]


def passages(found: Sequence[dict[str, Any]]) -> str:
  """'Doc 1(Title: ...) ...', a line for each document."""
  lines = []
  for number, one in enumerate(found, 1):
    title, _, text = one['document']['contents'].partition('\n')
    lines.append(f'Doc {number}(Title: {title}) {text}')
  return '\n'.join(lines)


def _result(answer, count):
  """The lists of documents. Raises: ValueError for another form."""
  lists = answer.get('result') if isinstance(answer, dict) else None
  if not isinstance(lists, list) or len(lists) != count:
    raise ValueError(f'{answer!r:.200} has no list "result" of {count} lists')
  for one in (one for found in lists for one in found):
    if not isinstance(one.get('document', {}).get('contents'), str):
      raise ValueError(f'{one!r:.200} has no document with contents')
  return lists


@functools.cache
def _documents(path: str) -> tuple[dict[str, Any], ...]:
  found = []
  with open(pathlib.Path(path).expanduser(), encoding='utf-8') as lines:
    for number, line in enumerate(lines, 1):
      row = json.loads(line)
      if not isinstance(row, dict) or not isinstance(row.get('contents'), str):
        raise ValueError(f'{path}:{number}: no field "contents"')
      found.append(row)
  return tuple(found)
