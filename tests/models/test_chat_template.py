"""Features that chat templates of public models take for granted."""

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
  """Templates for training mark it, within loops and conditions."""
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
  """`transformers` passes None, too: templates compare tools with none."""
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
  """The limit is that of the process itself."""
  template = ChatTemplate('{% if text %}' + source + '{% endif %}ok')
  message = '^chat template: it needs more than 1024 MiB for one conversation$'
  with pytest.raises(ValueError, match=message):
    template.render(text='a' * 999)
  assert template.render(text='') == 'ok'


# As gpt-oss and Mistral Small 3.1 ask for the day, and as Llama 3.2 does.
OSS = "{{ 'Current date: ' + strftime_now('%Y-%m-%d') }}"
MISTRAL = "{% set today = strftime_now('%d %B %Y') %}{{ today }}"
LLAMA = (
  "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}"
  '{% else %}26 Jul 2024{% endif %}'
)
LLAMA_NOT = '{% if strftime_now is not defined %}no{% else %}yes{% endif %}'


def test_the_day_is_the_same_on_every_day():
  """Templates that can do without the function have their own day."""
  assert tokenizer(OSS).chat(MESSAGES) == 'Current date: 2025-01-01'
  assert tokenizer(MISTRAL).chat(MESSAGES) == '01 January 2025'
  assert tokenizer(LLAMA).chat(MESSAGES) == '26 Jul 2024'
  assert tokenizer(LLAMA_NOT).chat(MESSAGES) == 'no'
  ids = tokenizer(OSS).encode_chat(MESSAGES)
  assert ids == tokenizer(OSS).encode('Current date: 2025-01-01')


def test_another_day_is_a_variable_of_the_template():
  """A task's `arguments` hold it, so that it is recorded with the run."""
  day = {'strftime_now': '2025-06-30'}
  assert tokenizer(OSS).chat(MESSAGES, **day) == 'Current date: 2025-06-30'
  assert tokenizer(LLAMA).chat(MESSAGES, **day) == '30 Jun 2025'
  hour = "{{ strftime_now('%H:%M') }}"
  day['strftime_now'] += 'T13:05'
  assert tokenizer(hour).chat(MESSAGES, **day) == '13:05'


@pytest.mark.parametrize('day', ['tomorrow', '', 20250630, ['2025-06-30']])
def test_a_day_that_is_none(day):
  with pytest.raises(
    ValueError, match='strftime_now = .* is not a date: .*2025'
  ):
    tokenizer(OSS).chat(MESSAGES, strftime_now=day)
  with pytest.raises(ValueError, match='reads no strftime_now'):
    tokenizer('a').chat(MESSAGES, strftime_now='2025-06-30')


@pytest.mark.parametrize(
  ('template', 'field', 'hint'),
  [
    ('{{ messages }}', 'reasoning_content', 'may be in the content'),
    ('{{ m.thinking }}', 'reasoning_content', 'it reads thinking'),
    ('{{ m.reasoning_content }}', 'thinking', 'it reads reasoning_content'),
  ],
)
def test_thoughts_that_are_not_read_say_where_they_are(template, field, hint):
  messages = [MESSAGES[0], {**MESSAGES[1], field: 'c'}]
  with pytest.raises(ValueError, match=f'have {field}, .* not read; .*{hint}'):
    tokenizer(template).chat(messages)
