"""Text <-> token ids: bytes, characters, and byte-level BPE of public models.

A tokenizer is a small frozen value. `decode` accepts any ids (a policy may
sample everything) and drops special tokens; `encode` adds none. The files
that `save_tokenizer` writes are those of a Hugging Face directory.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import json
import os
from typing import Any, Protocol

from rl_jax.models.files.directories import read_json, write_json
from rl_jax.models.files.optional import require

Message = Mapping[str, str]  # role: system, user or assistant; content


class Tokenizer(Protocol):
  """What tasks and rollouts use."""

  eos_ids: tuple[int, ...]  # each of them ends a response
  pad_id: int
  vocab_size: int  # ids are below it; a model's vocabulary may be larger

  def encode(self, text: str) -> list[int]:
    """Token ids of a text; nothing is added in front or behind."""

  def decode(self, ids: Iterable[int]) -> str:
    """The text without special tokens; never raises on any ids."""

  def chat(
    self, messages: Sequence[Message], add_generation_prompt: bool = True
  ) -> str:
    """The text of a conversation, open for the assistant's answer."""


def _plain_chat(messages: Sequence[Message]) -> str:
  """Contents joined by newlines, for tokenizers without a template."""
  return '\n'.join(message['content'] for message in messages)


@dataclasses.dataclass(frozen=True)
class ByteTokenizer:
  """UTF-8 bytes as ids 0..255, then padding and end of sequence."""

  pad_id = 256
  eos_ids = (257,)
  vocab_size = 258

  def encode(self, text: str) -> list[int]:
    """The UTF-8 bytes; lone surrogates become '?'."""
    return list(text.encode('utf-8', errors='replace'))

  def decode(self, ids: Iterable[int]) -> str:
    """Invalid UTF-8 becomes U+FFFD; ids that are no byte are dropped."""
    kept = bytes(i for i in map(int, ids) if 0 <= i < 256)
    return kept.decode('utf-8', errors='replace')

  def chat(self, messages, add_generation_prompt=True) -> str:
    """The contents, joined by newlines."""
    return _plain_chat(messages)


@dataclasses.dataclass(frozen=True)
class CharTokenizer:
  """One id per character of an alphabet; 0 is padding, 1 ends a sequence.

  Raises: ValueError if a character occurs twice, or, from `encode`, if the
    alphabet lacks it.
  """

  alphabet: str
  pad_id = 0
  eos_ids = (1,)

  def __post_init__(self):
    twice = sorted({c for c in self.alphabet if self.alphabet.count(c) > 1})
    if twice or not self.alphabet:
      raise ValueError(
        f'CharTokenizer.alphabet = {self.alphabet!r} must be non-empty '
        f'without repetition; repeated: {twice}'
      )

  @property
  def vocab_size(self) -> int:
    """Padding, end of sequence, and the alphabet."""
    return len(self.alphabet) + 2

  @functools.cached_property
  def _id_of(self) -> dict[str, int]:
    return {c: i + 2 for i, c in enumerate(self.alphabet)}

  def encode(self, text: str) -> list[int]:
    """One id per character."""
    try:
      return [self._id_of[c] for c in text]
    except KeyError as error:
      raise ValueError(
        f'character {error.args[0]!r} of {text!r} is not in the alphabet '
        f'{self.alphabet!r}'
      ) from None

  def decode(self, ids: Iterable[int]) -> str:
    """Ids outside the alphabet are dropped."""
    letters, last = self.alphabet, self.vocab_size
    return ''.join(letters[i - 2] for i in map(int, ids) if 2 <= i < last)

  def chat(self, messages, add_generation_prompt=True) -> str:
    """The contents, joined by newlines."""
    return _plain_chat(messages)


@dataclasses.dataclass(frozen=True)
class HFTokenizer:
  """A `tokenizers` object with special ids and a chat template.

  The template is rendered as `transformers` does: sandboxed jinja2 with
  trimmed blocks. Special tokens that a text spells out become special ids.
  """

  backend: Any  # tokenizers.Tokenizer
  eos_ids: tuple[int, ...]
  pad_id: int
  bos_id: int | None = None
  chat_template: str | None = None

  @functools.cached_property
  def vocab_size(self) -> int:
    """One more than the largest id, added tokens included."""
    return 1 + max(self.backend.get_vocab(with_added_tokens=True).values())

  def encode(self, text: str) -> list[int]:
    """Byte-level BPE ids; no beginning-of-sequence token is added."""
    return self.backend.encode(text, add_special_tokens=False).ids

  def decode(self, ids: Iterable[int]) -> str:
    """Special tokens and ids without a token are dropped."""
    known = [i for i in map(int, ids) if 0 <= i < self.vocab_size]
    return self.backend.decode(known, skip_special_tokens=True)

  def token(self, token_id: int | None) -> str | None:
    """The text of one token, special or not."""
    return None if token_id is None else self.backend.id_to_token(token_id)

  @functools.cached_property
  def _template(self):
    if self.chat_template is None:
      raise ValueError(
        'this tokenizer has no chat template (a base model?): write the '
        'prompt as plain text'
      )
    sandbox = require('jinja2.sandbox', 'a chat template')
    environment = sandbox.ImmutableSandboxedEnvironment(
      trim_blocks=True,
      lstrip_blocks=True,
      extensions=['jinja2.ext.loopcontrols'],
    )
    # The filter of jinja2 escapes HTML, which no model was trained on.
    environment.filters['tojson'] = functools.partial(
      json.dumps, ensure_ascii=False
    )
    # strftime_now stays undefined: templates that would write today's date
    # then use a fixed one, and prompts do not change over night.
    environment.globals['raise_exception'] = _raise_template_error
    return environment.from_string(self.chat_template)

  def chat(self, messages, add_generation_prompt=True, **variables) -> str:
    """The rendered template.

    Args:
      messages: role and content of each turn.
      add_generation_prompt: open the assistant's turn at the end.
      **variables: switches of the template, `enable_thinking=False` say.

    Raises: ValueError without a template, or from the template itself.
    """
    return self._template.render(
      messages=[dict(message) for message in messages],
      add_generation_prompt=add_generation_prompt,
      bos_token=self.token(self.bos_id) or '',
      eos_token=self.token(self.eos_ids[0]) or '',
      **variables,
    )


def _raise_template_error(text: str):
  raise ValueError(f'chat template: {text}')


def check_vocabulary(tokenizer: Tokenizer, size: int, origin: str) -> None:
  """Raises ValueError if the tokenizer has ids that a model of size lacks."""
  if tokenizer.vocab_size > size:
    raise ValueError(
      f'{origin}: the tokenizer has {tokenizer.vocab_size} ids, the model '
      f'has {size}'
    )


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
  elif isinstance(tokenizer, (ByteTokenizer, CharTokenizer)):
    config = {
      'tokenizer_class': f'rl_jax.{type(tokenizer).__name__}',
      **dataclasses.asdict(tokenizer),
    }
  else:
    raise TypeError(f'cannot save a tokenizer of {type(tokenizer)}')
  write_json(directory, 'tokenizer_config.json', config)


def load_tokenizer(directory: str) -> Tokenizer:
  """Reads the tokenizer of one of our model directories or of Hugging Face.

  The ids that end a response are those of generation_config.json and the
  tokenizer's own end token: chat models often have two.

  Raises: ValueError naming the missing file or token.
  """
  config = _json_or_empty(directory, 'tokenizer_config.json')
  kind = config.get('tokenizer_class')
  if kind == 'rl_jax.ByteTokenizer':
    return ByteTokenizer()
  if kind == 'rl_jax.CharTokenizer':
    return CharTokenizer(config['alphabet'])
  path = os.path.join(directory, 'tokenizer.json')
  if not os.path.exists(path):
    raise ValueError(f'{directory} has no tokenizer.json')
  backend = require('tokenizers', 'tokenizer.json').Tokenizer.from_file(path)
  generation = _json_or_empty(directory, 'generation_config.json')

  def token_id(name):
    token = config.get(name)
    token = token['content'] if isinstance(token, dict) else token
    return None if token is None else backend.token_to_id(token)

  eos = generation.get('eos_token_id')
  eos_ids = list(eos) if isinstance(eos, list) else [eos]
  eos_ids = [token_id('eos_token'), *eos_ids]
  eos_ids = tuple(dict.fromkeys(i for i in eos_ids if i is not None))
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
    chat_template=_chat_template(directory, config),
  )


def _chat_template(directory: str, config: Mapping[str, Any]) -> str | None:
  path = os.path.join(directory, 'chat_template.jinja')
  if os.path.exists(path):
    with open(path, encoding='utf-8') as file:
      return file.read()
  template = config.get('chat_template')
  if isinstance(template, list):  # several named ones
    template = {t['name']: t['template'] for t in template}.get('default')
  return template


def _json_or_empty(directory: str, name: str) -> dict[str, Any]:
  path = os.path.join(directory, name)
  return read_json(path) if os.path.exists(path) else {}
