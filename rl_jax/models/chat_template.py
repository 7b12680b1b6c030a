"""Chat templates of model files, rendered in a process with limits.

A template is a program that comes with a model. The sandbox of jinja2 keeps it
from accessing files, but not from endless loops and unbounded strings, which
can only be stopped in a separate process. That process runs this file as a
script: it reads and writes one line of JSON per conversation.
"""

from collections.abc import Mapping, Sequence
import datetime
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
# The day that templates get which ask for the current one: the same on every
# day, so that prompts of a run, and of its evaluations later, are the same. The
# variable `strftime_now` of a task's `arguments` is another one.
DATE = '2025-01-01'
# Templates that can do without the function have a date of their own.
_OWN_DATE = re.compile(r'\bstrftime_now\s+is\s+(not\s+)?(un)?defined\b')
# Parts of a message that a template must not leave out in silence.
_THOUGHTS = ('reasoning_content', 'thinking')
MUST_READ = ('tool_calls', *_THOUGHTS)
_IN_CONTENT = '; thoughts may stand in the content, in the tags of the model'


class ChatTemplate:
  """A jinja2 template; its process starts with the first rendering."""

  def __init__(self, source: str):
    self._source = source
    self._lock = threading.Lock()
    self._stop = None

  def render(self, **variables) -> str:
    """The text.

    Raises: ValueError from the template, or if it exceeds a limit.
    """
    with self._lock:
      if self._stop is None:
        self._start()
      answer = self._request({**_ABSENT, **variables})
      if answer is None:
        self._stop()  # the next call starts another process
        self._stop = None
    if answer is None:
      raise ValueError(
        f'chat template: stopped; it has {SECONDS:g} s and '
        f'{MEMORY_BYTES >> 20} MiB for one conversation'
      )
    if 'error' in answer:
      raise ValueError(f'chat template: {answer["error"]}')
    return answer['text']

  def _start(self) -> None:
    self._process = subprocess.Popen(
      [sys.executable, '-I', __file__],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      start_new_session=True,  # Ctrl-C is for the run
    )
    self._stop = weakref.finalize(self, _end, self._process)
    self._request(
      {'path': sys.path, 'source': self._source, 'seconds': SECONDS}
    )

  def _request(self, value: Any) -> Any:
    """The answer; None if the process has ended."""
    try:
      self._process.stdin.write(json.dumps(value).encode() + b'\n')
      self._process.stdin.flush()
    except BrokenPipeError:
      return None
    line = self._process.stdout.readline()
    return json.loads(line) if line.endswith(b'\n') else None


def check_read(messages: Sequence[Mapping[str, Any]], template: str) -> None:
  """Raises ValueError for what messages have and a template does not name."""
  read = [x for x in MUST_READ if re.search(rf'\b{x}\b', template)]
  for name in MUST_READ:
    if name not in read and any(name in message for message in messages):
      hint, others = '', [x for x in read if x in _THOUGHTS]
      if name in _THOUGHTS:
        hint = f'; it reads {others[0]}' if others else _IN_CONTENT
      raise ValueError(
        f'the messages have {name}, which the chat template of this tokenizer '
        f'does not read{hint}'
      )


def _end(process: subprocess.Popen) -> None:
  process.kill()
  process.wait()
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
      variables = _dated(json.loads(line), setup['source'])
      text = compiled().render(variables)
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
  environment.globals['raise_exception'] = _raise
  return environment


def _dated(variables: dict[str, Any], source: str) -> dict[str, Any]:
  """The variables with the function strftime_now, of a fixed date.

  It stays undefined where nothing is given and the template asks whether it is.
  """
  date = variables.pop('strftime_now', None)
  if date is None:
    if _OWN_DATE.search(source):
      return variables
    date = DATE
  try:
    moment = datetime.datetime.fromisoformat(date)
  except (TypeError, ValueError):
    raise ValueError(
      f'strftime_now = {date!r:.80} is no date: expected one as {DATE!r}'
    ) from None
  return {**variables, 'strftime_now': lambda form: moment.strftime(form)}


def _raise(text: str):
  raise ValueError(text)


if __name__ == '__main__':
  _serve()
