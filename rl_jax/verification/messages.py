"""Messages of failures, short enough for a journal and a log of responses.

An error may quote the whole response, for every response of a run.
"""

import traceback

MOST_CHARACTERS = 2000  # of a message, and of the lines of code above it


def cut(text: str) -> str:
  """The beginning and the end of a text that is too long."""
  if len(text) <= MOST_CHARACTERS:
    return text
  half = MOST_CHARACTERS // 2
  left_out = len(text) - 2 * half
  return f'{text[:half]} ... {left_out} characters ... {text[-half:]}'


def of_error(error: BaseException) -> str:
  """The traceback of an error that is handled now, its last frames."""
  whole = traceback.format_exc(limit=-8)
  message = ''.join(traceback.format_exception_only(error))
  if whole.endswith(message):
    return cut(whole.removesuffix(message)) + cut(message)
  return cut(whole)


def named(error: BaseException) -> str:
  """The type of an error, and what it says."""
  return cut(f'{type(error).__name__}: {error}')
