"""Chat templates of model files, rendered in a process with limits.

A template is a program that comes with a model. The sandbox of jinja2 keeps it
from accessing files, but not from endless loops and unbounded strings, which
can only be stopped in a separate process. That process runs this file as a
script: it reads and writes one line of JSON per conversation.
"""

from collections.abc import Mapping, Sequence
import functools
import json
import re
import signal
import subprocess
import sys
import threading
from typing import Any
import weakref

SECONDS = 10.0  # of one rendering
MEMORY_BYTES = 1 << 30
OUTPUT_CHARACTERS = 1 << 22
# What `transformers` gives where a conversation has none.
_ABSENT = {'tools': None, 'documents': None}
# Parts of a message that a template must not leave out in silence.
MUST_READ = ('tool_calls', 'reasoning_content', 'thinking')


class ChatTemplate:
  """A jinja2 template; its process starts with the first rendering."""

  def __init__(self, source: str):
    self._source = source
    self._lock = threading.Lock()
    self._process: subprocess.Popen[bytes] | None = None

  def render(self, **variables) -> str:
    """The text.

    Raises: ValueError from the template, or if it exceeds a limit.
    """
    with self._lock:
      process = self._process or self._start()
      answer = _request(process, {**_ABSENT, **variables})
      if answer is None:
        self._stop()  # the next call starts another process
        self._process = None
    if answer is None:
      raise ValueError(
        f'chat template: stopped; it has {SECONDS:g} s and '
        f'{MEMORY_BYTES >> 20} MiB for one conversation'
      )
    if 'error' in answer:
      raise ValueError(f'chat template: {answer["error"]}')
    return answer['text']

  def _start(self) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
      [sys.executable, '-I', __file__],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      start_new_session=True,  # Ctrl-C is for the run
    )
    self._process = process
    self._stop = weakref.finalize(self, _end, process)
    _request(
      process, {'path': sys.path, 'source': self._source, 'seconds': SECONDS}
    )
    return process


def check_read(messages: Sequence[Mapping[str, Any]], template: str) -> None:
  """Raises ValueError for what messages have and a template does not name."""
  for name in MUST_READ:
    named = re.search(rf'\b{name}\b', template)
    if not named and any(name in message for message in messages):
      raise ValueError(
        f'the messages have {name}, which the chat template of this tokenizer '
        'does not read'
      )


def _request(process: subprocess.Popen[bytes], value: Any) -> Any:
  """The answer; None if the process has ended."""
  assert process.stdin and process.stdout
  try:
    process.stdin.write(json.dumps(value).encode() + b'\n')
    process.stdin.flush()
  except BrokenPipeError:
    return None
  line = process.stdout.readline()
  return json.loads(line) if line.endswith(b'\n') else None


def _end(process: subprocess.Popen[bytes]) -> None:
  process.kill()
  process.wait()
  assert process.stdin and process.stdout
  process.stdout.close()
  try:
    process.stdin.close()
  except BrokenPipeError:
    pass  # the rest of a request that the process did not read


def _serve() -> None:
  """Answers requests, the first of which is for set-up, until stdin closes."""
  import resource

  resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
  signal.signal(signal.SIGALRM, signal.SIG_DFL)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
  setup = json.loads(sys.stdin.buffer.readline())
  sys.path[:] = setup['path']
  environment = _environment()
  compiled = functools.cache(lambda: environment.from_string(setup['source']))
  _answer({})
  for line in sys.stdin.buffer:
    # SIGALRM ends the process.
    signal.setitimer(signal.ITIMER_REAL, setup['seconds'])
    try:
      text = compiled().render(json.loads(line))
      if len(text) > OUTPUT_CHARACTERS:
        raise ValueError(f'it writes more than {OUTPUT_CHARACTERS} characters')
      answer = {'text': text}
    except Exception as error:
      answer = {'error': str(error) or type(error).__name__}
    signal.setitimer(signal.ITIMER_REAL, 0)
    _answer(answer)


def _answer(value: dict[str, str]) -> None:
  sys.stdout.write(json.dumps(value) + '\n')
  sys.stdout.flush()


def _environment() -> Any:
  """That of `transformers`: sandboxed, with trimmed blocks."""
  from jinja2 import ext, nodes, sandbox

  class Generation(ext.Extension):
    """{% generation %}...{% endgeneration %}: what is within, as it is."""

    tags = {'generation'}

    def parse(self, parser):
      line = next(parser.stream).lineno
      body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
      call = self.call_method('_written')
      return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _written(self, caller):
      return caller()

  environment = sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True,
    lstrip_blocks=True,
    extensions=[Generation, ext.loopcontrols],
  )
  # The filter of jinja2 escapes HTML, which no model was trained on.
  environment.filters['tojson'] = functools.partial(
    json.dumps, ensure_ascii=False
  )
  # strftime_now stays undefined: templates that would write today's date then
  # use a fixed one, and prompts are the same on every day.
  functions: dict[str, Any] = environment.globals
  functions['raise_exception'] = _raise
  return environment


def _raise(text: str):
  raise ValueError(text)


if __name__ == '__main__':
  _serve()
