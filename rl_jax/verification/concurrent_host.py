"""Many live episodes of one worker process, whose calls run at the same time.

Imports no JAX. Coroutines share an event loop, blocking calls have threads.
"""

import asyncio
from concurrent import futures
import inspect
import json
from multiprocessing.connection import Connection
import pickle
import queue
import threading
from typing import Any

from rl_jax.verification import session_host

CANCEL = 'cancel'  # in place of a request: the call has no time left
_THREADS = 256
_CLOSE_SECONDS = 2.0


class ConcurrentHost(session_host.Host):
  """Episodes whose calls wait without their process.

  Every blocking call has its own thread. An episode that is over is closed
  while the next calls run.
  """

  _cancelled = 'timeout'

  def __init__(self, task: Any):
    super().__init__(task)
    self._threads = None
    if task.traits.workers == 'thread':
      self._threads = futures.ThreadPoolExecutor(_THREADS)
    self._closes: set[asyncio.Task] = set()

  async def _made(self, call, *arguments):
    if inspect.iscoroutinefunction(call):
      return await call(*arguments)
    if self._threads is None:
      return call(*arguments)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(self._threads, call, *arguments)

  async def _end(self, episode, tell, answer=None):
    del tell, answer
    environment, *_ = self.live.pop(episode, (None,))
    if environment is not None:
      task = asyncio.ensure_future(self._close(environment))
      self._closes.add(task)
      task.add_done_callback(self._closes.discard)

  async def _close(self, environment):
    try:
      await asyncio.wait_for(self._made(environment.close), _CLOSE_SECONDS)
    except (Exception, SystemExit):
      pass  # its replies are known, and it is gone


async def serve(connection: Connection, host: ConcurrentHost) -> None:
  """Answers calls as they end, until the trainer closes the connection.

  A message that cancels a call is confirmed at once, and the call then has no
  other result than that, whatever it does.
  """
  loop, tasks, cancelled = asyncio.get_running_loop(), {}, set()
  ended = loop.create_future()
  replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()

  def send(*reply):
    replies.put(json.dumps(reply).encode())

  def write():
    # In its own thread: a loop that waited until the trainer reads would not
    # read itself, and the trainer may wait for that.
    try:
      while True:
        connection.send_bytes(replies.get())
    except OSError:
      pass  # the trainer has closed the connection

  threading.Thread(target=write, daemon=True).start()

  async def answer(number, *request):
    reply = await host.answered(*request)
    if number in cancelled:
      episode = request[0]
      await host._end(episode, None)
      reply = ('timeout', None, 'cancelled at its time limit')
      cancelled.discard(number)
    tasks.pop(number)
    send(number, *reply)

  def read():
    try:
      while connection.poll():
        for number, *request in pickle.loads(connection.recv_bytes()):
          if request != [CANCEL]:
            tasks[number] = loop.create_task(answer(number, *request))
          elif number in tasks:
            cancelled.add(number)
            send(number, session_host.BUSY, None, '')
            tasks[number].cancel()
    except (EOFError, OSError):
      if not ended.done():
        ended.set_result(None)

  loop.add_reader(connection.fileno(), read)
  await ended
