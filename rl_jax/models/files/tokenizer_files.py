"""The tokenizer files of a directory: ours, and those of Hugging Face."""

from collections.abc import Mapping
import dataclasses
import json
import os
from typing import Any

from absl import logging

from rl_jax.models.files.directories import (
  read_json,
  read_text,
  require_size,
  write_json,
)
from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.models.tokenizer import (
  ByteTokenizer,
  CharTokenizer,
  HFTokenizer,
  Tokenizer,
  library_errors,
)
from rl_jax.optional import require


def save_tokenizer(tokenizer: Tokenizer, directory: str) -> None:
  """Writes the tokenizer files of a model directory.

  All kinds: tokenizer_config.json. BPE: also tokenizer.json and
  generation_config.json, as `transformers` reads them.
  """
  if isinstance(tokenizer, HFTokenizer):
    config = {
      'tokenizer_class': 'PreTrainedTokenizerFast',
      'bos_token': tokenizer.token(tokenizer.bos_id),
      'eos_token': tokenizer.token(tokenizer.eos_ids[0]),
      'pad_token': tokenizer.token(tokenizer.pad_id),
      'chat_template': tokenizer.chat_template,
      'clean_up_tokenization_spaces': False,
    }
    generation = {
      'bos_token_id': tokenizer.bos_id,
      'eos_token_id': list(tokenizer.eos_ids),
      'pad_token_id': tokenizer.pad_id,
    }
    tokenizer.backend.save(os.path.join(directory, 'tokenizer.json'))
    write_json(directory, 'generation_config.json', generation)
  elif isinstance(tokenizer, (ByteTokenizer, CharTokenizer, PieceTokenizer)):
    config = {
      'tokenizer_class': f'rl_jax.{type(tokenizer).__name__}',
      **dataclasses.asdict(tokenizer),
    }
  else:
    raise TypeError(f'cannot save a tokenizer of {type(tokenizer)}')
  write_json(directory, 'tokenizer_config.json', config)


def load_tokenizer(directory: str, size: int | None = None) -> Tokenizer:
  """Reads the tokenizer of one of our model directories or of Hugging Face.

  The ids that end a response are those of generation_config.json and the
  tokenizer's own end token: chat models often have two.
  size: of the model's vocabulary. Special tokens beyond it that the chat
  template does not name are left out: Gemma 3 has one for images, also where
  the model reads text only.

  Raises: ValueError naming the missing file or token.
  """
  config = _json_or_empty(directory, 'tokenizer_config.json')
  kind = config.get('tokenizer_class')
  if kind == 'rl_jax.ByteTokenizer':
    return ByteTokenizer()
  if kind == 'rl_jax.CharTokenizer':
    return _made(CharTokenizer, config.get('alphabet'), directory)
  if kind == 'rl_jax.PieceTokenizer':
    pieces = config.get('pieces')
    pieces = tuple(pieces) if isinstance(pieces, list) else pieces
    return _made(PieceTokenizer, pieces, directory)
  path = os.path.join(directory, 'tokenizer.json')
  if not os.path.exists(path):
    raise ValueError(f'{directory} has no tokenizer.json')
  backend, template = _read_backend(path), _chat_template(directory, config)
  if size is not None:
    backend = _within(backend, size, template or '', path)
  generation = _json_or_empty(directory, 'generation_config.json')

  def token_id(name):
    token = config.get(name)
    token = token.get('content') if isinstance(token, dict) else token
    return backend.token_to_id(token) if isinstance(token, str) else None

  eos = generation.get('eos_token_id')
  eos_ids = list(eos) if isinstance(eos, list) else [eos]
  eos_ids = [i for i in (token_id('eos_token'), *eos_ids) if i is not None]
  if any(type(i) is not int for i in eos_ids):
    raise ValueError(
      f'{directory}: eos_token_id of generation_config.json is {eos!r:.80}, '
      'not a token id or a list of them'
    )
  eos_ids = tuple(dict.fromkeys(eos_ids))
  if not eos_ids:
    raise ValueError(
      f'{directory}: neither generation_config.json nor '
      'tokenizer_config.json names an end-of-sequence token'
    )
  pad_id = token_id('pad_token')
  return HFTokenizer(
    backend,
    eos_ids=eos_ids,
    pad_id=eos_ids[0] if pad_id is None else pad_id,
    bos_id=token_id('bos_token'),
    chat_template=template,
  )


def _made(kind: type, letters: Any, directory: str) -> Tokenizer:
  try:
    return kind(letters)
  except ValueError as error:
    path = os.path.join(directory, 'tokenizer_config.json')
    raise ValueError(f'{path}: {error}') from None


def _read_backend(path: str) -> Any:
  """The `tokenizers` object of a file, without truncation and padding.

  Prompts are measured before they are padded, so neither may happen here.
  """
  require_size(path)
  lib = require('tokenizers', 'tokenizer.json')
  with library_errors(f'{path} is not a readable tokenizer'):
    backend = lib.Tokenizer.from_file(path)
  if not backend.get_vocab(with_added_tokens=True):
    raise ValueError(f'{path} has no tokens')
  backend.no_truncation()
  backend.no_padding()
  with library_errors(f'{path} is not a usable tokenizer'):
    backend.decode(list(range(64)))  # a policy may sample any ids
  return backend


def _within(backend: Any, size: int, template: str, path: str) -> Any:
  """Drops special tokens beyond the vocabulary, except the template's."""
  beyond = {
    i: token.content
    for i, token in backend.get_added_tokens_decoder().items()
    if i >= size and token.special and token.content not in template
  }
  if not beyond:
    return backend
  logging.warning('%s: the model has no %s', path, sorted(beyond.values()))
  described = json.loads(backend.to_str())
  described['added_tokens'] = [
    token for token in described['added_tokens'] if token['id'] not in beyond
  ]
  return type(backend).from_str(json.dumps(described))


def _chat_template(directory: str, config: Mapping[str, Any]) -> str | None:
  path = os.path.join(directory, 'chat_template.jinja')
  if os.path.exists(path):
    return read_text(path)
  template = config.get('chat_template')
  if isinstance(template, list):  # several named ones
    named = [t for t in template if isinstance(t, dict)]
    if len(named) < len(template):
      raise ValueError(
        f'{directory}: chat_template of tokenizer_config.json has entries '
        'without name and template'
      )
    chosen = [t.get('template') for t in named if t.get('name') == 'default']
    template = chosen[-1] if chosen else None
  if template is not None and not isinstance(template, str):
    raise ValueError(
      f'{directory}: chat_template of tokenizer_config.json is not text'
    )
  return template


def _json_or_empty(directory: str, name: str) -> dict[str, Any]:
  path = os.path.join(directory, name)
  return read_json(path) if os.path.exists(path) else {}
