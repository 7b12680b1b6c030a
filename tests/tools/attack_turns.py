"""Turns that attack the worker of an episode; prints a table.

  python tests/tools/attack_turns.py

Calls of the tools 'python' and 'sql' that take long, need much, or end
processes, so that the row would leave its group instead of counting as wrong.
An attack is blocked if the turn is answered within the time limit of a run, by
the same process. Exit status 1 if one is not.
"""

from collections.abc import Sequence
import json
import os
import sqlite3
import sys
import tempfile

from rl_jax.tasks import WithTools
from rl_jax.tasks.environments import tool_calls
from rl_jax.verification.sessions import Answer, Request, SessionPool
from rl_jax.worlds import Arithmetic

SECONDS = 10.0  # the time limit of a call in a run
CODES = {
  'never ends': 'while True: pass',
  'sleeps': 'import time; time.sleep(300)',
  'a long step': '9**9**9**9',
  'memory': 'x = [0] * 10**10',
  'output': 'print("x" * 10**8)',
  'recursion': 'def f(): f()\nf()',
  'abort': 'import os; os.abort()',
  'kill the parent': 'import os; os.kill(os.getppid(), 9)',
  'KeyboardInterrupt': 'raise KeyboardInterrupt',
  'exit': 'exit()',
  'half a character': 'print("\\ud800")',
  'brackets': '[' * 10_000,
  'forks': 'import os\nwhile True: os.fork()',
}
_HEX = 'hex(zeroblob(400000))'
QUERIES = {
  'a huge value': 'select length(randomblob(999999999))',
  'a long step': "select printf('%.*c', 999999999, 'x')",
  'a long search': f"select instr({_HEX}, hex(zeroblob(200000)) || '1')",
  'endless rows': 'with recursive n(x) as (select 1 union all select x + 1 '
  'from n) select count(*) from n',
  'memory': 'with recursive n(x) as (select hex(randomblob(400000)) union '
  'select hex(randomblob(400000)) from n) select count(*) from n',
  'many large values': f'select {", ".join(900 * [_HEX])}',
  'a setting': 'pragma hard_heap_limit = 1',
}


def turns(times: int) -> dict[str, str]:
  """Each attack that many times in one turn."""
  found = {
    f'{tool}: {name}': {'name': tool, 'arguments': {argument: text}}
    for tool, argument, texts in (
      ('python', 'code', CODES),
      ('sql', 'query', QUERIES),
    )
    for name, text in texts.items()
  }
  call = '{}{}{}'.format(tool_calls.OPEN, '{}', tool_calls.CLOSE)
  return {name: times * call.format(json.dumps(x)) for name, x in found.items()}


def attack(
  texts: Sequence[str], folder: str, seconds: float
) -> tuple[list[Answer], bool]:
  """(answers to these first turns, whether one process has given all).

  seconds: of the calls of a turn.
  """
  path = os.path.join(folder, 'numbers.db')
  sqlite3.connect(path).close()
  open(path, 'wb').close()  # an empty database
  task = WithTools(
    task=Arithmetic(digits=1),
    functions=('python', f'sql:{path}'),
    shown='text',
    turn_seconds=seconds,
  )
  example = task.example('train', 0)
  with SessionPool(task, 1, SECONDS) as pool:
    before = pool.worker_pids()
    requests = [
      Request((0, n), example, 0, (text,)) for n, text in enumerate(texts)
    ]
    return pool.ask(requests), pool.worker_pids() == before


def main() -> None:
  """Prints the table; exit status 1 if an attack is not blocked."""
  named = turns(5)
  with tempfile.TemporaryDirectory() as folder:
    found, same = attack(list(named.values()), folder, 6.0)
  print('| attack, five times in a turn | answered | the end of the answer |')
  print('|---|---|---|')
  for name, answer in zip(named, found, strict=True):
    text = answer.reply['observation'] if answer.reply else answer.detail
    text = ' '.join(text.split()).replace('|', '/')[-70:]
    print(f'| {name} | {answer.kind} | {text} |')
  blocked = sum(one.kind == 'ok' for one in found)
  print(f'\n{blocked} of {len(found)} blocked; by one process: {same}')
  if blocked < len(found) or not same:
    sys.exit(1)


if __name__ == '__main__':
  main()
