"""Text <-> token ids: bytes, characters, and byte-level BPE of public models.

A tokenizer is a small frozen value. `decode` accepts any ids (a policy may
sample everything) and drops special tokens; `encode` adds none, and reads none
in data. Files: `files/tokenizer_files.py`.
"""

import abc
from collections.abc import Generator, Iterable, Mapping, Sequence
import contextlib
import copy
import dataclasses
import functools
import itertools
import re
from typing import Any, Protocol

from rl_jax.models import assistant_turn, call_arguments, token_bytes
from rl_jax.models.chat_template import ChatTemplate, check_read
from rl_jax.optional import require

_MARK = '\ufdd0'  # a noncharacter: no text has it
# role (system, user, ...), content, and what else a template reads of a turn.
Message = Mapping[str, Any]
# Messages, and whether the assistant's turn is open at their end.
Conversation = tuple[Sequence[Message], bool]


class Tokenizer(Protocol):
  """The tokenizer that tasks and rollouts use."""

  @property
  def bos_id(self) -> int | None:
    """The id that begins every text of the model; None: there is none."""

  @property
  def chat_template(self) -> str | None:
    """The template of conversations; None: there is none."""

  @property
  def added_special(self) -> dict[int, str]:
    """Special tokens of a file by id, which are not text."""

  @property
  def eos_ids(self) -> tuple[int, ...]:
    """Ids that each end a response."""

  @property
  def pad_id(self) -> int:
    """The id that fills prompts and responses to one length."""

  @property
  def vocab_size(self) -> int:
    """All ids are below it; a model's vocabulary may be larger."""

  @property
  def token_bytes(self) -> tuple[bytes, ...]:
    """The UTF-8 that each id adds to a decoded text."""

  def encode(self, text: str, control: bool = False) -> list[int]:
    """Token ids of a text; nothing is added before or after it.

    control: special tokens that the text spells become control tokens. They
    are ordinary text otherwise, as data must not end a turn or begin another.
    """

  def encode_prompt(self, parts: Sequence[str]) -> list[int]:
    """Token ids of a plain prompt, with what begins every text of the model.

    parts: template, data, template, ... in turn; special tokens are read in
    the template only.
    """

  def encode_chat(
    self, messages: Sequence[Message], prefill: str = '', **variables: Any
  ) -> list[int]:
    """Token ids of `chat` followed by prefill.

    Special tokens are read in the template and in prefill, not in messages.
    variables: of the template, as in `chat`.
    """

  def encode_added(
    self, before: Conversation, after: Conversation, **variables: Any
  ) -> list[int]:
    """Token ids of what the text of one conversation adds to that of another.

    Raises: ValueError if it does not begin with it.
    """

  def encode_turn(
    self,
    messages: Sequence[Message],
    turn: Message,
    is_last: bool,
    /,
    **variables: Any,
  ) -> list[int]:
    """Token ids of the assistant's turn as it follows the open conversation.

    With what the template writes after it; see models/assistant_turn.py.

    Raises: ValueError if the template does not open such a turn.
    """

  def decode(self, ids: Iterable[int]) -> str:
    """The text without special tokens; never raises on any ids."""

  def chat(
    self,
    messages: Sequence[Message],
    add_generation_prompt: bool = True,
    **variables: Any,
  ) -> str:
    """The text of a conversation, open for the assistant's answer."""


@contextlib.contextmanager
def library_errors(what: str) -> Generator[None]:
  """Errors of the tokenizers library as ValueError that begins with `what`.

  Damaged files make its Rust code panic, which is not an Exception in Python.
  """
  try:
    yield
  except ImportError:
    raise
  except BaseException as error:
    panic = type(error).__name__ == 'PanicException'
    if not (panic or isinstance(error, Exception)):
      raise
    raise ValueError(f'{what}: {error}') from None


class PlainText(abc.ABC):
  """Prompts of tokenizers without special tokens and template."""

  bos_id: int | None = None
  chat_template: str | None = None

  @property
  def added_special(self) -> dict[int, str]:
    """There are none."""
    return {}

  @abc.abstractmethod
  def encode(self, text: str, control: bool = False) -> list[int]:
    """See Tokenizer."""

  def encode_prompt(self, parts: Sequence[str]) -> list[int]:
    """The parts as one text."""
    return self.encode(''.join(parts))

  def encode_chat(
    self, messages: Sequence[Message], prefill: str = '', **variables: Any
  ) -> list[int]:
    """The conversation and prefill as one text."""
    return self.encode(self.chat(messages, **variables) + prefill)

  def encode_added(
    self, before: Conversation, after: Conversation, **variables: Any
  ) -> list[int]:
    """See Tokenizer."""
    first, second = (self.chat(*x, **variables) for x in (before, after))
    return self.encode(assistant_turn.added(first, second))

  def encode_turn(
    self,
    messages: Sequence[Message],
    turn: Message,
    is_last: bool,
    /,
    **variables: Any,
  ) -> list[int]:
    """See Tokenizer: what the turn adds."""
    del is_last
    opened, closed = (messages, True), ((*messages, turn), False)
    return self.encode_added(opened, closed, **variables)

  def chat(self, messages, add_generation_prompt=True, **variables) -> str:
    """The contents, joined by newlines; ValueError for any variable."""
    del add_generation_prompt
    if variables:
      raise ValueError(
        f'{type(self).__name__} has no chat template, which could read '
        + ', '.join(variables)
      )
    check_read(messages, '')
    return '\n'.join(message['content'] for message in messages)


@dataclasses.dataclass(frozen=True)
class ByteTokenizer(PlainText):
  """UTF-8 bytes as ids 0..255, then padding and end of sequence."""

  pad_id = 256
  eos_ids = (257,)
  vocab_size = 258
  token_bytes = tuple(bytes([i]) for i in range(256)) + (b'', b'')

  def encode(self, text: str, control: bool = False) -> list[int]:
    """The UTF-8 bytes; lone surrogates become '?'."""
    return list(text.encode('utf-8', errors='replace'))

  def decode(self, ids: Iterable[int]) -> str:
    """Invalid UTF-8 becomes U+FFFD; ids that are not bytes are dropped."""
    kept = bytes(i for i in map(int, ids) if 0 <= i < 256)
    return kept.decode('utf-8', errors='replace')


@dataclasses.dataclass(frozen=True)
class CharTokenizer(PlainText):
  """One id per character of an alphabet; 0 is padding, 1 ends a sequence.

  Raises: ValueError if a character occurs twice, or, from `encode`, if the
    alphabet lacks it.
  """

  alphabet: str
  pad_id = 0
  eos_ids = (1,)

  def __post_init__(self):
    if not isinstance(self.alphabet, str):
      raise ValueError(
        f'CharTokenizer.alphabet = {self.alphabet!r:.80} is not text'
      )
    if any('\ud800' <= c <= '\udfff' for c in self.alphabet):
      raise ValueError(
        f'CharTokenizer.alphabet = {self.alphabet!r:.80} has half a character'
      )
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

  @property
  def token_bytes(self) -> tuple[bytes, ...]:
    """The bytes of each token; padding and end have none."""
    return (b'', b'', *(letter.encode() for letter in self.alphabet))

  @functools.cached_property
  def _id_of(self) -> dict[str, int]:
    return {c: i + 2 for i, c in enumerate(self.alphabet)}

  def encode(self, text: str, control: bool = False) -> list[int]:
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


@dataclasses.dataclass(frozen=True)
class HFTokenizer:
  """A `tokenizers` object with special ids and a chat template."""

  backend: Any  # tokenizers.Tokenizer
  eos_ids: tuple[int, ...]
  pad_id: int
  bos_id: int | None = None
  chat_template: str | None = None

  @functools.cached_property
  def vocab_size(self) -> int:
    """One more than the largest id, added tokens included."""
    return 1 + max(self.backend.get_vocab(with_added_tokens=True).values())

  @functools.cached_property
  def _for_data(self) -> Any:
    """The backend, but special tokens are ordinary text."""
    backend = copy.deepcopy(self.backend)
    backend.encode_special_tokens = True
    return backend

  @functools.cached_property
  def added_special(self) -> dict[int, str]:
    """The special tokens among the added ones: id -> text."""
    added = self.backend.get_added_tokens_decoder().items()
    return {i: token.content for i, token in added if token.special}

  @functools.cached_property
  def _special(self) -> re.Pattern[str] | None:
    """One special token, the longest that begins at a place."""
    names = sorted(self.added_special.values(), key=len)
    return re.compile('|'.join(map(re.escape, names[::-1]))) if names else None

  @functools.cached_property
  def _prefix(self) -> list[int]:
    """Returns what the tokenizer's own post-processor puts in front of a
    text.
    """
    with library_errors('this tokenizer cannot begin a text'):
      probe = self.backend.encode('a', add_special_tokens=True)
    added = zip(probe.ids, probe.special_tokens_mask, strict=True)
    return [i for i, _ in itertools.takewhile(lambda pair: pair[1], added)]

  def encode(self, text: str, control: bool = False) -> list[int]:
    """See Tokenizer."""
    backend = self.backend if control else self._for_data
    with library_errors(f'this tokenizer cannot encode {text!r:.80}'):
      return backend.encode(text, add_special_tokens=False).ids

  def encode_prompt(self, parts: Sequence[str]) -> list[int]:
    """See Tokenizer."""
    ids = self._encode_escaped(
      ''.join(self._escaped(x) if i % 2 else x for i, x in enumerate(parts))
    )
    own = self._prefix
    return ids if ids[: len(own)] == own else own + ids

  def encode_chat(
    self, messages: Sequence[Message], prefill: str = '', **variables: Any
  ) -> list[int]:
    """See Tokenizer; the template itself writes what begins a text."""
    text = self.chat(self._safe(messages), **self._safe(variables))
    return self._encode_escaped(text + prefill)

  def encode_added(
    self, before: Conversation, after: Conversation, **variables: Any
  ) -> list[int]:
    """See Tokenizer; special tokens are read in the template only."""
    texts = [
      self.chat(self._safe(messages), is_open, **self._safe(variables))
      for messages, is_open in (before, after)
    ]
    return self._encode_escaped(assistant_turn.added(*texts))

  def encode_turn(
    self,
    messages: Sequence[Message],
    turn: Message,
    is_last: bool,
    /,
    **variables: Any,
  ) -> list[int]:
    """See Tokenizer; special tokens are read in the template only."""
    variables = self._safe(variables)
    text = assistant_turn.written(
      lambda messages, is_open: self.chat(messages, is_open, **variables),
      self._safe(messages),
      self._safe(turn),
      is_last,
    )
    return self._encode_escaped(text)

  def _safe(self, value: Any) -> Any:
    """Messages or variables in which special tokens are marked as text."""
    if isinstance(value, str):
      return self._escaped(value)
    if isinstance(value, Mapping):
      return {self._safe(k): self._safe(x) for k, x in value.items()}
    if isinstance(value, (list, tuple)):
      return [self._safe(x) for x in value]
    return value

  def _escaped(self, text: str) -> str:
    """Inserts a mark into every special token that the text spells."""
    if self._special is None:
      return text

    def split(match):
      return match[0][0] + _MARK + match[0][1:]

    return self._special.sub(split, text)

  def _encode_escaped(self, text: str) -> list[int]:
    """Ids of a text in which special tokens with a mark are ordinary text.

    What lies between two special tokens is encoded by itself in any case: only
    parts with a mark are taken out.
    """
    if _MARK not in text or self._special is None:
      return self.encode(text, control=True)
    ids, rest = [], ''
    for part in re.split(f'({self._special.pattern})', text):
      if _MARK not in part:
        rest += part
        continue
      ids += self.encode(rest, control=True)
      ids += self.encode(part.replace(_MARK, ''))
      rest = ''
    return ids + self.encode(rest, control=True)

  @functools.cached_property
  def token_bytes(self) -> tuple[bytes, ...]:
    """See Tokenizer; ValueError if a text is not the sum of its tokens."""
    return token_bytes.of_backend(self.backend, self.vocab_size)

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
    require('jinja2.sandbox', 'a chat template')
    return ChatTemplate(self.chat_template)

  def chat(self, messages, add_generation_prompt=True, **variables) -> str:
    """The rendered template.

    Args:
      messages: role and content of each turn.
      add_generation_prompt: open the assistant's turn at the end.
      **variables: switches of the template, `enable_thinking=False` say.

    Raises: ValueError without a template, for a variable that it does not
      name (or a part of messages, see check_read), or from the template itself,
      also if it exceeds the limits of time and memory of `chat_template`.
    """
    unknown = [x for x in variables if x not in (self.chat_template or x)]
    if unknown:
      raise ValueError(
        f'the chat template of this tokenizer reads no {", ".join(unknown)}'
      )
    check_read(messages, self.chat_template or '')
    call_arguments.check_named(messages, self.chat_template or '')
    render = functools.partial(
      self._template.render,
      add_generation_prompt=add_generation_prompt,
      bos_token=self.token(self.bos_id) or '',
      eos_token=self.token(self.eos_ids[0]) or '',
      **variables,
    )
    return call_arguments.rendered(
      lambda messages: render(messages=[dict(one) for one in messages]),
      messages,
    )


def special_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
  """Ids that are not text: padding, ends, and special tokens of a file."""
  added = tokenizer.added_special
  return tuple(sorted({tokenizer.pad_id, *tokenizer.eos_ids, *added}))


def check_vocabulary(tokenizer: Tokenizer, size: int, origin: str) -> None:
  """Raises ValueError if the tokenizer has ids that a model of size lacks."""
  if tokenizer.vocab_size > size:
    raise ValueError(
      f'{origin}: the tokenizer has {tokenizer.vocab_size} ids, the model '
      f'has {size}'
    )
  bos_id = tokenizer.bos_id
  special = {
    'end': tokenizer.eos_ids,
    'padding': (tokenizer.pad_id,),
    'beginning': () if bos_id is None else (bos_id,),
  }
  for name, ids in special.items():
    outside = [i for i in ids if not 0 <= i < size]
    if outside:
      raise ValueError(
        f'{origin}: the {name} token {outside[0]} is outside the vocabulary of '
        f'{size} ids'
      )
