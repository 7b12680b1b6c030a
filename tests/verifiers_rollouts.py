"""A small environment of verifiers; the stub stands in for the package."""

import os
import signal

import verifiers


class Guessing(verifiers.MultiTurnEnv):
  """The policy guesses the number of a row; it hears 'more' or 'less'."""

  async def env_response(self, messages, state, **kwargs):
    """The answer to a guess."""
    del kwargs
    last = messages[-1]
    content = last['content'] if isinstance(last, dict) else last.content
    if content == state['answer']:
      state['final_env_response'] = [{'role': 'user', 'content': 'yes'}]
      return state['final_env_response']
    hint = 'more' if content < state['answer'] else 'less'
    return [{'role': 'user', 'content': hint}]


def right(completion, answer, **kwargs):
  """Returns whether the last guess is right, as a number."""
  del kwargs
  said = [one for one in completion if _part(one, 'role') == 'assistant']
  return float(_part(said[-1], 'content') == answer) if said else 0.0


async def turns(state, **kwargs):
  """The number of guesses."""
  del kwargs
  return float(len(state['trajectory']))


def _part(message, name):
  return message[name] if isinstance(message, dict) else getattr(message, name)


def _rows(numbers):
  rows = [
    {
      'prompt': [
        {'role': 'system', 'content': 'Guess.'},
        {'role': 'user', 'content': f'0-{n}?'},
      ],
      'answer': str(n),
    }
    for n in numbers
  ]
  return verifiers_rows(rows)


def verifiers_rows(rows):
  """Rows as the package has them."""
  try:
    from datasets import Dataset
  except ImportError:
    return [{**row, 'example_id': n} for n, row in enumerate(rows)]
  return Dataset.from_list(rows)


def environment():
  """Five rows of training, and four to evaluate."""
  return Guessing(
    dataset=_rows(range(3, 8)),
    eval_dataset=_rows(range(2, 6)),
    rubric=verifiers.Rubric(funcs=[right, turns], weights=[1.0, 0.0]),
    max_turns=3,
  )


MADE = []  # environments by `of_its_process`: the process of each


async def here(**kwargs):
  """Returns whether this process has made the environment, as a number."""
  del kwargs
  return float(MADE[-1] == os.getpid())


def of_its_process():
  """An environment whose reward says who has made it."""
  MADE.append(os.getpid())
  return Guessing(
    dataset=_rows(range(3, 8)),
    eval_dataset=_rows(range(2, 6)),
    rubric=verifiers.Rubric(funcs=[here], weights=[1.0]),
    max_turns=3,
  )


def with_signals():
  """It ends the process at a signal, as those of the package do."""
  for one in (signal.SIGINT, signal.SIGTERM):
    signal.signal(one, lambda *_: os._exit(1))
  return environment()


def with_tools():
  """Asks with a tool, which the policy does not read."""
  made = environment()
  made.tools = ['search']
  return made
