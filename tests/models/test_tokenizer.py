"""Tokenizers: round trips, special tokens, templates, files."""

import json
import sys

import numpy as np
import pytest

from rl_jax.models import tokenizer as tokenizer_lib
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import ByteTokenizer, CharTokenizer, HFTokenizer

TEXTS = ('', 'the 3 tests', 'wörld\n\t日本 🙂', 'a<b & "c"')
CHATML = (
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
  "{{ m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def byte_letters():
  """GPT-2's 256 printable letters for the bytes, by byte."""
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  return [chr(b if b in kept else next(spare)) for b in range(256)]


def bpe(template=CHATML, pre='smollm'):
  """All bytes, three merges, two special tokens at the front."""
  tokens = ['<|im_start|>', '<|im_end|>', *byte_letters()]
  tokens += ['th', 'the', 'Ġt', '12']
  merges = ['t h', 'th e', 'Ġ t', '1 2']
  types = [3, 3] + [1] * (len(tokens) - 2)
  backend = gguf_import.byte_level_bpe(pre, tokens, merges, types)
  return HFTokenizer(backend, eos_ids=(1, 0), pad_id=0, chat_template=template)


ALL = {
  'byte': ByteTokenizer(),
  'char': CharTokenizer('0123456789+= '),
  'bpe': bpe(),
}


@pytest.mark.parametrize('text', TEXTS)
@pytest.mark.parametrize('name', ['byte', 'bpe'])
def test_round_trip_of_any_text(name, text):
  tokenizer = ALL[name]
  ids = tokenizer.encode(text)
  assert tokenizer.decode(ids) == text
  assert all(0 <= i < tokenizer.vocab_size for i in ids)
  assert not set(ids) & {*tokenizer.eos_ids, tokenizer.pad_id}


@pytest.mark.parametrize('name', ALL)
def test_decode_never_raises(name):
  """Half a character, special, negative, huge and unused ids."""
  tokenizer = ALL[name]
  rng = np.random.default_rng(0)
  for _ in range(50):
    ids = rng.integers(-5, tokenizer.vocab_size + 5, size=20)
    assert isinstance(tokenizer.decode(ids), str)
  assert tokenizer.decode([2**31, -(2**31), 2**40]) == ''
  assert tokenizer.decode([tokenizer.pad_id, *tokenizer.eos_ids]) == ''


def test_char_ids_and_errors():
  tokenizer = CharTokenizer('ab')
  assert tokenizer.encode('abba') == [2, 3, 3, 2]
  assert tokenizer.vocab_size == 4
  with pytest.raises(ValueError, match="'c' of 'abc' is not in the alphabet"):
    tokenizer.encode('abc')
  with pytest.raises(ValueError, match=r"repeated: \['a'\]"):
    CharTokenizer('aba')


def test_special_tokens_are_single_ids_and_merges_apply():
  tokenizer = bpe()
  the = tokenizer.backend.token_to_id('the')
  assert tokenizer.encode('<|im_start|>the<|im_end|>') == [0, the, 1]
  assert tokenizer.decode([0, the, 1]) == 'the'


@pytest.mark.parametrize(
  'pre, pieces',
  [
    ('smollm', ['1', '2', '1', '2']),
    ('qwen2', ['1', '2', '1', '2']),
    ('llama-bpe', ['12', '1', '2']),  # 121 | 2
    ('gpt-2', ['12', '12']),
  ],
)
def test_digits_split_as_each_family_does(pre, pieces):
  """The merge '1 2' exists; only the splitting can prevent it."""
  tokenizer = bpe(pre=pre)
  assert [tokenizer.token(i) for i in tokenizer.encode('1212')] == pieces


def test_chat_template():
  messages = [{'role': 'user', 'content': 'a <b> & c'}]
  text = '<|im_start|>user\na <b> & c<|im_end|>\n'
  assert bpe().chat(messages, add_generation_prompt=False) == text
  assert bpe().chat(messages) == text + '<|im_start|>assistant\n'
  assert ByteTokenizer().chat(messages * 2) == 'a <b> & c\na <b> & c'
  assert CharTokenizer('ab').chat([{'role': 'user', 'content': 'ab'}]) == 'ab'


def test_chat_template_variables_json_and_errors():
  template = '{{ messages[0] | tojson }}{{ eos_token }}{{ mode }}'
  messages = [{'role': 'user', 'content': '<é>'}]
  text = '{"role": "user", "content": "<é>"}<|im_end|>on'
  assert bpe(template).chat(messages, mode='on') == text
  with pytest.raises(ValueError, match='chat template: roles must alternate'):
    bpe("{{ raise_exception('roles must alternate') }}").chat(messages)
  with pytest.raises(ValueError, match='no chat template'):
    bpe(None).chat(messages)


@pytest.mark.parametrize('name', ALL)
def test_files_keep_everything(name, tmp_path):
  saved = ALL[name]
  tokenizer_lib.save_tokenizer(saved, str(tmp_path))
  loaded = tokenizer_lib.load_tokenizer(str(tmp_path))
  assert type(loaded) is type(saved)
  for field in ('pad_id', 'eos_ids', 'vocab_size'):
    assert getattr(loaded, field) == getattr(saved, field)
  text = '12 = 3' if name == 'char' else '<|im_start|>the wörld 12'
  assert loaded.encode(text) == saved.encode(text)
  messages = [{'role': 'user', 'content': 'hi'}]
  assert loaded.chat(messages) == saved.chat(messages)


def rewrite(path, **changes):
  """Changes fields of a JSON file."""
  value = json.loads(path.read_text())
  path.write_text(json.dumps({**value, **changes}))


def test_ends_and_templates_of_public_directories(tmp_path):
  """Two end tokens, one as an object, and a template in a file of its own."""
  tokenizer_lib.save_tokenizer(bpe(), str(tmp_path))
  rewrite(
    tmp_path / 'tokenizer_config.json',
    eos_token={'content': '<|im_end|>', 'special': True},
    pad_token=None,
    chat_template=[
      {'name': 'tool_use', 'template': 'tools'},
      {'name': 'default', 'template': 'plain'},
    ],
  )
  rewrite(tmp_path / 'generation_config.json', eos_token_id=[0, 1])
  loaded = tokenizer_lib.load_tokenizer(str(tmp_path))
  assert loaded.eos_ids == (1, 0)
  assert loaded.pad_id == 1
  assert loaded.chat([]) == 'plain'
  (tmp_path / 'chat_template.jinja').write_text('file')
  assert tokenizer_lib.load_tokenizer(str(tmp_path)).chat([]) == 'file'


def test_incomplete_directories(tmp_path):
  with pytest.raises(ValueError, match='has no tokenizer.json'):
    tokenizer_lib.load_tokenizer(str(tmp_path))
  tokenizer_lib.save_tokenizer(bpe(), str(tmp_path))
  rewrite(tmp_path / 'tokenizer_config.json', eos_token=None)
  (tmp_path / 'generation_config.json').unlink()
  with pytest.raises(ValueError, match='end-of-sequence'):
    tokenizer_lib.load_tokenizer(str(tmp_path))
  (tmp_path / 'tokenizer_config.json').write_text('{')
  with pytest.raises(ValueError, match='tokenizer_config.json is not JSON'):
    tokenizer_lib.load_tokenizer(str(tmp_path))


def test_missing_dependency_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, 'jinja2.sandbox', None)
  with pytest.raises(ImportError, match='pip install Jinja2'):
    bpe().chat([])


def test_vocabulary_larger_than_the_model():
  with pytest.raises(ValueError, match='258 ids, the model has 100'):
    tokenizer_lib.check_vocabulary(ByteTokenizer(), 100, 'x')
