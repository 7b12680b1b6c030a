"""A small server that answers the protocol of retrievers from a file, by BM25.

python -m experiments.tools.retriever --corpus=documents.jsonl --port=8000

The file has a document a line, {"contents": "TITLE\\nTEXT"}, as wiki-18.jsonl
of PeterJinGo/wiki-18-corpus; the index is in memory. The server stands in for a
dense retriever where there is none: its passages are others.
WithTools(functions=('retrieve:http://127.0.0.1:8000/retrieve',), ...) asks it.
Needs the extra 'search'.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json

from absl import flags

from experiments.flags import configuration
from rl_jax.tasks.environments import retriever

_CORPUS = flags.DEFINE_string('corpus', None, 'Documents.', required=True)
_PORT = flags.DEFINE_integer('port', 8000, 'Of this machine only.')
_MOST_BYTES = 10_000_000  # of a request
_MOST_DOCUMENTS = 100  # of a query


def make(corpus: str, port: int) -> ThreadingHTTPServer:
  """A server that listens; its documents have been read. port: 0 is a free one.

  Raises: FileNotFoundError, or ValueError naming a line without contents.
  """
  retriever.check(corpus)

  class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self):
      """Answers queries, or says what is wrong with them."""
      size = int(self.headers.get('Content-Length', 0))
      try:
        if size > _MOST_BYTES:
          raise ValueError(f'{size} bytes, more than {_MOST_BYTES}')
        asked = json.loads(self.rfile.read(size))
        status, answer = 200, {'result': answered(corpus, asked)}
      except (ValueError, TypeError, KeyError) as error:
        status, answer = 400, {'error': f'{type(error).__name__}: {error}'}
      body = json.dumps(answer).encode()
      self.send_response(status)
      self.send_header('Content-Type', 'application/json')
      self.send_header('Content-Length', str(len(body)))
      self.end_headers()
      self.wfile.write(body)

    def log_message(self, format, *args):
      """Says nothing of each request."""

  return ThreadingHTTPServer(('127.0.0.1', port), Handler)


def answered(corpus: str, asked: dict) -> list:
  """Documents of each query, with their scores if they are asked for."""
  queries = [str(query) for query in asked['queries']]
  count = min(int(asked.get('topk') or retriever.TOPK), _MOST_DOCUMENTS)
  found = retriever.search(corpus, queries, count)
  if asked.get('return_scores'):
    return found
  return [[one['document'] for one in documents] for documents in found]


def main() -> None:
  """Serves until it is interrupted."""
  with make(_CORPUS.value, _PORT.value) as server:
    print(f'http://127.0.0.1:{server.server_port}/retrieve', flush=True)
    server.serve_forever()


if __name__ == '__main__':
  configuration.run(main)
