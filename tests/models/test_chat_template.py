"""What chat templates of public models take for granted."""

import os
import signal

import pytest

from rl_jax.models import chat_template
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


@pytest.mark.parametrize(
  'number, message',
  [
    (signal.SIGSTOP, 'its process has not answered for 0.3 s: it was stopped'),
    (signal.SIGKILL, 'its process was killed from outside, .* out of memory'),
    (signal.SIGSEGV, 'its process ended with status -11'),
  ],
)
def test_a_process_that_does_not_answer_is_named(monkeypatch, number, message):
  """The signal comes with the request; the next conversation is rendered."""
  template = ChatTemplate('{{ text }}')
  assert template.render(text='a') == 'a'
  monkeypatch.setattr(chat_template, 'SECONDS', 0.2)
  monkeypatch.setattr(chat_template, 'GRACE_SECONDS', 0.1)
  dumps = chat_template.json.dumps

  def signalled(value):
    os.kill(template._process.pid, number)
    return dumps(value)

  with monkeypatch.context() as patch:
    patch.setattr(chat_template.json, 'dumps', signalled)
    with pytest.raises(ValueError, match=f'^chat template: {message}'):
      template.render(text='b' * (1 << 20))  # more than a pipe holds
  monkeypatch.setattr(chat_template, 'GRACE_SECONDS', 10.0)
  assert template.render(text='c') == 'c'


def test_a_process_that_was_killed_while_it_was_idle_is_no_error():
  template = ChatTemplate('{{ text }}')
  assert template.render(text='a') == 'a'
  template._process.kill()
  template._process.wait()
  assert template.render(text='b') == 'b'


@pytest.mark.parametrize(
  'source', ["{{ 'a' * 9999999999 }}", "{{ (text * 99999).split('a') }}"]
)
def test_want_of_memory_is_named(source):
  """Of the limit of the process itself."""
  template = ChatTemplate('{% if text %}' + source + '{% endif %}ok')
  message = '^chat template: it needs more than 1024 MiB for one conversation$'
  with pytest.raises(ValueError, match=message):
    template.render(text='a' * 999)
  assert template.render(text='') == 'ok'
