"""Token ids of recorded responses, and which of them the policy would write."""

from typing import Any

from rl_jax.models import assistant_turn
from rl_jax.tasks.base import Example, RecordedResponse


def closing_ids(tokenizer: Any) -> tuple[int, ...]:
  """The tokens of the chat template after the end of an assistant's last turn.

  ChatML's newline, say; () without a template.
  """
  if tokenizer.chat_template is None:
    return ()
  asked = ({'role': 'user', 'content': 'a'},)
  said = (*asked, {'role': 'assistant', 'content': 'b'})
  ids = tokenizer.encode_added((asked, False), (said, False))
  ends = [i for i, x in enumerate(ids) if x in tokenizer.eos_ids]
  return tuple(ids[ends[-1] + 1 :]) if ends else ()


def encode_recorded(
  example: Example, recorded: RecordedResponse, tokenizer: Any
) -> tuple[list[int], list[bool]]:
  """(ids, whether the policy is trained on each), the end token included.

  A text is closed by the tokenizer's end token; its steps, if it has such, are
  encoded one by one. Of a conversation the turns of the assistant are trained,
  each to its end token; what the template and other turns write between them is
  not. Of the turns of an episode what was said is trained, with an end token if
  they have such.

  Raises: ValueError if the template writes earlier turns otherwise when the
    conversation continues, or opens turns in another way than these begin.
  """
  ids, trained = [], []

  def add(more, by_policy):
    ids.extend(more)
    trained.extend([by_policy] * len(more))

  end = tokenizer.eos_ids[0]
  if recorded.turns:
    closing = [end] if recorded.turn_ends else []
    for said, observed in recorded.turns:
      add(tokenizer.encode(said) + closing, True)
      add(tokenizer.encode(observed), False)
    return ids, trained
  if not recorded.messages:
    parts = recorded.steps or (recorded.text,)
    add([*(i for part in parts for i in tokenizer.encode(part)), end], True)
    return ids, trained
  messages, closed = list(example.messages), None
  for turn in recorded.messages:
    if turn['role'] == 'assistant':
      opened = (tuple(messages), True)
      if closed is not None:
        add(_between(tokenizer, closed, opened, example.arguments), False)
      closed = ((*messages, turn), False)
      is_last = turn is recorded.messages[-1]
      answer = tokenizer.encode_turn(
        messages, turn, is_last, **example.arguments
      )
      ends = [i for i, x in enumerate(answer) if x in tokenizer.eos_ids]
      size = ends[-1] + 1 if ends else len(answer)
      add(answer[:size], True)
      if not ends:
        add([end], True)
      rest = answer[size:]
      if not is_last:
        add(rest, False)
    messages.append(turn)
  return ids, trained


def _between(tokenizer, closed, opened, variables) -> list[int]:
  """Returns what the template writes between two turns of the assistant."""
  try:
    return tokenizer.encode_added(closed, opened, **variables)
  except assistant_turn.RewrittenError as error:
    raise ValueError(f'{error}; {assistant_turn.EACH_A_ROW}') from error
