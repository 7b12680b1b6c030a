"""The text of a recorded assistant turn, after its generation prompt.

Mostly the template says it: the closed conversation begins with the open one.
Templates of reasoning models may open the turn with a tag, '<think>', that they
do not write, or leave thoughts out, once the turn is closed. Then it is the
turn as recorded, without the tag with which it is opened, and what the template
writes after the content of a turn.
"""

from collections.abc import Callable, Mapping, Sequence
import os
import re
from typing import Any

_CONTENT = '\ufdd1'  # a noncharacter: no text has it
_TAG = re.compile(r'<([^<>/\s]+)>\s*$')  # opened at the end of a text
EACH_A_ROW = (
  'later turns follow another text than the one before them, so make a row of '
  'each turn of the assistant, with the turns before it as its prompt'
)
Message = Mapping[str, Any]
Chat = Callable[[Sequence[Message], bool], str]  # (messages, is_open) -> text


class RewrittenError(ValueError):
  """A template rewrites earlier turns when a conversation continues."""


def written(
  chat: Chat, messages: Sequence[Message], turn: Message, is_last: bool
) -> str:
  """The text that follows `chat(messages, True)`.

  is_last: the conversation does not continue after the turn.

  Raises: ValueError if the turn does not begin as the template opens it, or if
    later turns would follow another text than the one that is trained.
  """
  opened, closed = chat(messages, True), chat((*messages, turn), False)
  if closed.startswith(opened):
    return closed[len(opened) :]
  asked = chat(messages, False)
  marked = chat((*messages, {**turn, 'content': _CONTENT}), False)
  before, mark, after = marked.partition(_CONTENT)
  if not (mark and opened.startswith(asked) and before.startswith(asked)):
    raise _rewritten(opened, closed)
  said = None
  if opened.startswith(before):
    said = _after_tag(turn['content'], opened[len(before) :])
  if said is None:
    raise ValueError(_opened_otherwise(opened[len(asked) :], closed, asked))
  if not is_last:
    raise ValueError(
      f'the chat template leaves thoughts out of earlier turns: {EACH_A_ROW}'
    )
  return said + after


def added(before: str, after: str) -> str:
  """Returns what a text adds to another.

  Raises: RewrittenError if it does not begin with it.
  """
  if not after.startswith(before):
    raise _rewritten(before, after)
  return after[len(before) :]


def _rewritten(before: str, after: str) -> RewrittenError:
  same = len(os.path.commonprefix([before, after]))
  return RewrittenError(
    'the chat template writes what came before otherwise when the conversation '
    f'continues: after {before[max(0, same - 40) : same]!r} comes '
    f'{after[same : same + 80]!r}, where {before[same : same + 80]!r} was'
  )


def _opened_otherwise(opening: str, closed: str, asked: str) -> str:
  """The message for a turn that does not begin as the template opens it."""
  found = closed[len(asked) :][:80]
  text = (
    f"the chat template opens the assistant's turn with {opening!r}, and the "
    f'recorded one begins with {found!r}: '
  )
  if '</' in opening:
    return text + (
      'leave out its thoughts, or turn them on, where the template has a '
      "variable for it (arguments={'enable_thinking': True})"
    )
  return text + (
    'write its thoughts, which may be empty, with their tags in front of the '
    'answer or, where the template reads it, as reasoning_content of the turn; '
    'or turn thoughts off, where the template has a variable for it '
    "(arguments={'enable_thinking': False})"
  )


def _after_tag(content: str, opening: str) -> str | None:
  """The content as it follows `opening`; None if it does not belong there."""
  tag = opening.strip()
  if not tag:  # the template has changed the content itself
    return None
  if content.startswith(opening):
    return content[len(opening) :]
  if content.lstrip().startswith(tag):
    return content.lstrip()[len(tag) :].lstrip('\n')
  match = _TAG.search(opening)
  if match and f'</{match[1]}>' in content:
    return content
  return None
