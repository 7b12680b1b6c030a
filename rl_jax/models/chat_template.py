"""Chat templates of model files, rendered in a process with limits.

A template is a program that comes with a model. The sandbox of jinja2 keeps it
from accessing files, but not from endless loops and unbounded strings, which
can only be stopped in a separate process. That process runs this file as a
script: it reads and writes one line of JSON per conversation.
"""

from collections.abc import Callable, Mapping, Sequence
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

SECONDS = 10.0  # of one rendering; the process ends itself after them
GRACE_SECONDS = 10.0  # for the way of an answer, then the process is killed
START_SECONDS = 60.0  # for the imports of a process that starts
MEMORY_BYTES = 1 << 30
_NO_MEMORY = 42  # exit status
OUTPUT_CHARACTERS = 1 << 22
# What `transformers` gives where a conversation has none.
_ABSENT = {'tools': None, 'documents': None}
# The day that templates get which ask for the current one: the same on every
# day, so that prompts of a run, and of its evaluations later, are the same. The
# variable `strftime_now` of a task's `arguments` is another one.
DATE = '2025-01-01'
# Templates that can do without the function have their own date.
_OWN_DATE = re.compile(r'\bstrftime_now\s+is\s+(not\s+)?(un)?defined\b')
# Parts of a message that a template must not leave out in silence.
_THOUGHTS = ('reasoning_content', 'thinking')
MUST_READ = ('tool_calls', *_THOUGHTS)
_IN_CONTENT = '; thoughts may be in the content, in the tags of the model'


class ChatTemplate:
  """A jinja2 template; its process starts with the first rendering."""

  def __init__(self, source: str):
    self._source = source
    self._lock = threading.Lock()
    self._stop: Callable[[], Any] | None = None

  def render(self, **variables) -> str:
    """The text.

    Raises: ValueError from the template, or if it exceeds a limit.
    """
    with self._lock:
      if self._stop is None or self._process.poll() is not None:
        self._start()
      answer = self._request({**_ABSENT, **variables}, SECONDS + GRACE_SECONDS)
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
    setup = {'path': sys.path, 'source': self._source, 'seconds': SECONDS}
    self._request(setup, START_SECONDS)

  def _request(self, value: Any, seconds: float) -> dict[str, str]:
    """The answer of the process, which has so many seconds for it.

    Raises: ValueError with the reason if it has ended or does not answer; the
      next rendering starts another process.
    """
    process, stalled = self._process, threading.Event()
    assert process.stdin is not None and process.stdout is not None

    def kill():
      stalled.set()
      process.kill()  # also one that a signal has stopped

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
      process.stdin.write(json.dumps(value).encode() + b'\n')
      process.stdin.flush()
      line = process.stdout.readline()
    except BrokenPipeError:
      line = b''
    finally:
      timer.cancel()
    if line.endswith(b'\n'):
      return json.loads(line)
    code = process.wait()
    if self._stop is not None:
      self._stop()
    self._stop = None
    why = (
      f'its process has not answered for {seconds:g} s: it was stopped, or the '
      'machine is too busy'
      if stalled.is_set()
      else _why_ended(code)
    )
    raise ValueError(f'chat template: {why}')


def _why_ended(code: int) -> str:
  """Returns what the exit status of a process says, for a message."""
  if code == -signal.SIGALRM:
    return f'it does not end within {SECONDS:g} s'
  if code == _NO_MEMORY:
    return _needs_memory()
  if code == -signal.SIGKILL:
    return (
      'its process was killed from outside, as systems do that run out of '
      'memory'
    )
  return f'its process ended with status {code}'


def _needs_memory() -> str:
  return f'it needs more than {MEMORY_BYTES >> 20} MiB for one conversation'


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
  assert process.stdin is not None and process.stdout is not None
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
    except MemoryError:
      answer = {'error': _needs_memory()}
    except Exception as error:
      answer = {'error': str(error) or type(error).__name__}
    signal.setitimer(signal.ITIMER_REAL, 0)
    _answer(answer)


def _answer(value: dict[str, str]) -> None:
  sys.stdout.write(json.dumps(value) + '\n')
  sys.stdout.flush()


def _environment() -> Any:
  """The Jinja environment of `transformers`: sandboxed, with trimmed blocks."""
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
  known: Any = environment.globals  # the type of jinja2 has only its own names
  known['raise_exception'] = _raise
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
      f'strftime_now = {date!r:.80} is not a date: expected one as {DATE!r}'
    ) from None
  return {**variables, 'strftime_now': lambda form: moment.strftime(form)}


def _raise(text: str):
  raise ValueError(text)


if __name__ == '__main__':
  try:
    _serve()
  except MemoryError:  # of reading or writing a line
    sys.exit(_NO_MEMORY)
