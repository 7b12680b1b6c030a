"""What chat templates of public models take for granted."""

import pytest

from rl_jax.models.chat_template import ChatTemplate
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import HFTokenizer

MESSAGES = [
  {'role': 'user', 'content': 'a'},
  {'role': 'assistant', 'content': 'b'},
]


def tokenizer(template):
  backend = gguf_import.byte_level_bpe('qwen2', ['<|end|>', 'a'], [], [3, 1])
  return HFTokenizer(backend, eos_ids=(0,), pad_id=0, chat_template=template)


def test_what_a_model_generates_may_be_marked():
  """As templates for training do, within loops and conditions."""
  template = ChatTemplate(
    "{% for m in messages %}{% if m.role == 'assistant' %}\n"
    '  {% generation %}\n{{ m.content }}{{ loop.index }}<end>\n'
    '{% endgeneration %}\n'
    '{% else %}{{ m.content }}\n{% endif %}{% endfor %}'
  )
  assert template.render(messages=MESSAGES) == 'a\nb2<end>\n'
  with pytest.raises(ValueError, match='chat template: .*endgeneration'):
    ChatTemplate('{% generation %}a').render(messages=MESSAGES)


def test_tools_that_are_not_given_are_none():
  """As in `transformers`: templates compare them with none."""
  template = (
    '{% if tools is not none %}tools {{ tools | tojson }} {% endif %}'
    '{% if documents is not none %}documents{% endif %}'
    '{% for m in messages %}{{ m.content }}{% endfor %}'
  )
  assert tokenizer(template).chat(MESSAGES) == 'ab'
  assert tokenizer(template).chat(MESSAGES, tools=[1]) == 'tools [1] ab'
