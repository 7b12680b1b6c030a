"""Prompt templates: where the question goes, and how the answer begins."""

import dataclasses
from typing import Any

from rl_jax.tasks.base import Example

_SLOT = '{question}'


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


@dataclasses.dataclass(frozen=True)
class ChatTemplate:
  """Messages for the tokenizer's chat template.

  `shots` are worked examples, (user, assistant) pairs in front of the question.
  `prefill` opens the assistant's turn: it is part of the prompt for the policy
  and part of the answer for the verifier. `arguments` are variables of the
  model's own template: {'enable_thinking': False} for Qwen3.
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
    messages = []
    if self.system:
      messages.append({'role': 'system', 'content': self.system})
    for user, assistant in self.shots:
      shot = self.user.replace(_SLOT, user)
      messages.append({'role': 'user', 'content': shot})
      messages.append({'role': 'assistant', 'content': assistant})
    text = self.user.replace(_SLOT, question)
    messages.append({'role': 'user', 'content': text})
    return {
      'prompt': text,
      'messages': tuple(messages),
      'prefill': self.prefill,
      'arguments': dict(self.arguments),
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
  """Token ids of render_prompt; special tokens are read in templates alone."""
  if example.messages:
    return tokenizer.encode_chat(
      list(example.messages), example.prefill, **example.arguments
    )
  parts = example.parts or ('', example.prompt)
  if len(parts) % 2:  # prefill stands where a template does
    parts = (*parts, '')
  return tokenizer.encode_prompt((*parts, example.prefill))


def _require_slot(field: str, text: str) -> None:
  if _SLOT not in text:
    raise ValueError(f'{field} = {text!r} does not contain {_SLOT}')
