"""Tool calls of data in the forms that templates do not take."""

import json

import pytest

from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import HFTokenizer

ARGUMENTS = {'expression': '2 * 3', 'é': [1]}
TEXT = json.dumps(ARGUMENTS, ensure_ascii=False)
_CALLS = '{% for m in messages %}{% for c in m.tool_calls or [] %}'
_END = '{% endfor %}{% endfor %}'
_FUNCTION = '{% if c.function %}{% set c = c.function %}{% endif %}'
# As Qwen2.5 writes arguments, as Qwen3, Nemotron 3 and DeepSeek-V3.
TEMPLATES = {
  'json': _CALLS + _FUNCTION + '{{ c.arguments | tojson }}' + _END,
  'either': _CALLS
  + _FUNCTION
  + '{% if c.arguments is string %}{{ c.arguments }}{% else %}'
  + '{{ c.arguments | tojson }}{% endif %}'
  + _END,
  'items': _CALLS
  + _FUNCTION
  + '{% for k, x in c.arguments | items %}{{ k }}={{ x }};{% endfor %}'
  + _END,
  'text': _CALLS + _FUNCTION + "{{ '<' + c.arguments + '>' }}" + _END,
}
EXPECTED = {
  'json': TEXT,
  'either': TEXT,
  'items': 'expression=2 * 3;é=[1];',
  'text': f'<{TEXT}>',
}


def tokenizer(template):
  backend = gguf_import.byte_level_bpe('qwen2', ['<|end|>', 'a'], [], [3, 1])
  return HFTokenizer(backend, eos_ids=(0,), pad_id=0, chat_template=template)


def messages(arguments, nested=True, name='arguments'):
  call = {'name': 'calculator', name: arguments}
  if nested:
    call = {'type': 'function', 'function': call}
  return [{'role': 'assistant', 'content': '', 'tool_calls': [call]}]


@pytest.mark.parametrize('nested', [True, False])
@pytest.mark.parametrize('arguments', [ARGUMENTS, TEXT])
@pytest.mark.parametrize('name', TEMPLATES)
def test_objects_and_their_json_are_the_same(name, arguments, nested):
  """E0: neither in quotes, nor an error of the template."""
  own = tokenizer(TEMPLATES[name])
  assert own.chat(messages(arguments, nested)) == EXPECTED[name]


def test_text_that_is_no_object_stays():
  """Nothing is known of it: it is written as it is, or the template says no."""
  own = tokenizer(TEMPLATES['either'])
  assert own.chat(messages('2 * 3')) == '2 * 3'
  assert tokenizer(TEMPLATES['json']).chat(messages('2 * 3')) == '"2 * 3"'
  with pytest.raises(ValueError, match='chat template: .*mapping'):
    tokenizer(TEMPLATES['items']).chat(messages('2 * 3'))


@pytest.mark.parametrize('nested', [True, False])
def test_parameters_are_named(nested):
  """They were an error about an undefined value, or were left out."""
  given = messages(ARGUMENTS, nested, 'parameters')
  message = "call of 'calculator' has parameters, where .* reads arguments"
  with pytest.raises(ValueError, match=message):
    tokenizer(TEMPLATES['json']).chat(given)
  own = _CALLS + _FUNCTION + '{{ c.parameters | tojson }}' + _END
  assert tokenizer(own).chat(given) == TEXT


def test_special_tokens_in_arguments_are_ordinary_text():
  own = tokenizer(TEMPLATES['json'])
  for arguments in ({'x': '<|end|>'}, '{"x": "<|end|>"}'):
    ids = own.encode_chat(messages(arguments))
    assert 0 not in ids
