"""Prompt templates: where the question goes, and how the answer begins."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from rl_jax.tasks.base import Example

_SLOT = '{question}'
_SYSTEM = ('system', 'developer')  # roles


@dataclasses.dataclass(frozen=True)
class PlainTemplate:
  """Text around {question}; other braces (as in \\boxed{}) are literal."""

  text: str = 'Question: {question}\nAnswer:'

  def __post_init__(self):
    _require_slot('PlainTemplate.text', self.text)

  def fields(self, question: str) -> dict[str, Any]:
    """The prompt fields of an Example."""
    parts = []
    for own in self.text.split(_SLOT):
      parts += [own, question]
    return {'prompt': ''.join(parts[:-1]), 'parts': tuple(parts[:-1])}

  def conversation(
    self, turns: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]
  ) -> dict[str, Any]:
    """Raises ValueError: turns are rendered by the model's template only."""
    del turns, arguments
    raise ValueError(
      'the prompt is a conversation, which a PlainTemplate cannot render: set '
      'the field template to ChatTemplate() (of evaluate: --chat)'
    )


@dataclasses.dataclass(frozen=True)
class ChatTemplate:
  """Messages for the tokenizer's chat template.

  `shots` are worked examples, (user, assistant) pairs in front of the question.
  Of a prompt that is a conversation the last turn, if it is the user's, is the
  question; turns of the data come between the shots and it. `prefill` opens the
  assistant's turn: it is part of the prompt for the policy and part of the
  answer for the verifier. `arguments` are variables of the model's own
  template: {'enable_thinking': False} for Qwen3. Templates that write today's
  date get a fixed one (models.chat_template.DATE), or the one of
  {'strftime_now': '2025-06-30'}: prompts do not depend on the day.
  """

  user: str = '{question}'
  system: str = ''
  prefill: str = ''
  shots: tuple[tuple[str, str], ...] = ()
  arguments: dict[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )

  def __post_init__(self):
    _require_slot('ChatTemplate.user', self.user)

  def fields(self, question: str) -> dict[str, Any]:
    """The prompt fields of an Example."""
    return self.conversation(({'role': 'user', 'content': question},), {})

  def conversation(
    self, turns: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]
  ) -> dict[str, Any]:
    """The same of a conversation, and of what it says to the model's template.

    Raises: ValueError if both it and `system` have a system message.
    """
    *before, last = map(dict, turns)
    messages = []
    if before and before[0]['role'] in _SYSTEM:
      if self.system:
        raise ValueError(
          f'ChatTemplate.system = {self.system!r:.80}, but the conversation '
          f'has a message of the role {before[0]["role"]!r}: leave out one'
        )
      messages.append(before.pop(0))
    elif self.system:
      messages.append({'role': 'system', 'content': self.system})
    for user, assistant in self.shots:
      shot = self.user.replace(_SLOT, user)
      messages.append({'role': 'user', 'content': shot})
      messages.append({'role': 'assistant', 'content': assistant})
    if last['role'] == 'user':
      last['content'] = self.user.replace(_SLOT, last['content'])
    return {
      'prompt': last['content'],
      'messages': (*messages, *before, last),
      'prefill': self.prefill,
      'arguments': {**self.arguments, **arguments},
    }


def render_prompt(example: Example, tokenizer: Any) -> str:
  """The text that the policy continues, chat form and prefill included."""
  if not example.messages:
    return example.prompt + example.prefill
  chat = tokenizer.chat(
    list(example.messages), add_generation_prompt=True, **example.arguments
  )
  return chat + example.prefill


def encode_prompt(example: Example, tokenizer: Any) -> list[int]:
  """Token ids of render_prompt; special tokens are read in templates only."""
  if example.messages:
    return tokenizer.encode_chat(
      list(example.messages), example.prefill, **example.arguments
    )
  parts = example.parts or ('', example.prompt)
  if len(parts) % 2:  # prefill comes where a template does
    parts = (*parts, '')
  return tokenizer.encode_prompt((*parts, example.prefill))


def _require_slot(field: str, text: str) -> None:
  if _SLOT not in text:
    raise ValueError(f'{field} = {text!r} does not contain {_SLOT}')
