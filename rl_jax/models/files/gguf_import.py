"""GGUF files (llama.cpp): weights, tokenizer and chat template of one file.

Architectures llama, qwen2 and qwen3; quantised tensors become float32.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import os
from typing import Any

import numpy as np

from rl_jax.models import rope
from rl_jax.models.files import gguf_structure, tensor_table
from rl_jax.models.files.directories import require_file
from rl_jax.models.files.tensor_table import Rule, StoredTensor
from rl_jax.models.tokenizer import (
  HFTokenizer,
  check_vocabulary,
  library_errors,
)
from rl_jax.models.transformer import ModelConfig
from rl_jax.optional import require

RULES = (
  Rule('token_embd.weight', 'embed', 'V D', 'V D'),
  Rule('blk.{}.attn_norm.weight', 'layers/attn_norm', 'D', 'D'),
  Rule('blk.{}.attn_q.weight', 'layers/wq', 'HK D', 'D H K'),
  Rule('blk.{}.attn_k.weight', 'layers/wk', 'JK D', 'D J K'),
  Rule('blk.{}.attn_v.weight', 'layers/wv', 'JK D', 'D J K'),
  Rule('blk.{}.attn_output.weight', 'layers/wo', 'D HK', 'H K D'),
  Rule('blk.{}.attn_q.bias', 'layers/bq', 'HK', 'H K'),
  Rule('blk.{}.attn_k.bias', 'layers/bk', 'JK', 'J K'),
  Rule('blk.{}.attn_v.bias', 'layers/bv', 'JK', 'J K'),
  Rule('blk.{}.attn_q_norm.weight', 'layers/q_norm', 'K', 'K'),
  Rule('blk.{}.attn_k_norm.weight', 'layers/k_norm', 'K', 'K'),
  Rule('blk.{}.ffn_norm.weight', 'layers/mlp_norm', 'D', 'D'),
  Rule('blk.{}.ffn_gate.weight', 'layers/w_gate', 'F D', 'D F'),
  Rule('blk.{}.ffn_up.weight', 'layers/w_up', 'F D', 'D F'),
  Rule('blk.{}.ffn_down.weight', 'layers/w_down', 'D F', 'F D'),
  Rule('output_norm.weight', 'final_norm', 'D', 'D'),
  Rule('output.weight', 'lm_head', 'V D', 'D V'),
)

# The architecture llama rotates neighbouring channels: rows 2 r and 2 r + 1 of
# a head are what others keep at r and r + K / 2.
_INTERLEAVED = (
  Rule('blk.{}.attn_q.weight', 'layers/wq', 'HRC D', 'D H CR'),
  Rule('blk.{}.attn_k.weight', 'layers/wk', 'JRC D', 'D J CR'),
)

ARCHITECTURES = {
  'llama': {'qkv_bias': False, 'qk_norm': False},
  'qwen2': {'qkv_bias': True, 'qk_norm': False},
  'qwen3': {'qkv_bias': False, 'qk_norm': True},
}

# How a text is split before the merges, by tokenizer.ggml.pre. Sources: the
# tokenizer.json of each family and llama-vocab.cpp of llama.cpp.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r'[^\r\n\p{L}\p{N}]?\p{L}+'
_REST = r' ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+'
_SPLITS = {
  'gpt-2': None,  # ByteLevel's own expression
  'default': None,
  'smollm': 'digits',
  'llama-bpe': rf'{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}',
  'llama3': rf'{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}',
  'qwen2': rf'{_CONTRACTIONS}|{_WORDS}|\p{{N}}|{_REST}',
}
_LLAMA_3 = ('llama-bpe', 'llama3')
_CONTROL, _USER_DEFINED = 3, 4  # of tokenizer.ggml.token_type


def import_gguf(path: str, mesh: Any = None, **overrides):
  """Reads a file: (ModelConfig, params, tokenizer).

  Args:
    path: the .gguf file.
    mesh: where to place the parameters; None is the default device.
    **overrides: fields of ModelConfig.

  Raises: ValueError naming the metadata field or tensor that does not fit.
  """
  gguf = require('gguf', 'reading .gguf files')
  try:
    require_file(path)
    gguf_structure.check_structure(path)
    reader = gguf.GGUFReader(path)
    _check_places(reader, os.path.getsize(path))
  except (ValueError, LookupError, OSError, OverflowError) as error:
    raise ValueError(f'{path} is not a readable GGUF file: {error}') from error
  metadata = _Metadata(reader.fields, path)
  tensors = {t.name: _stored(gguf, t, path) for t in reader.tensors}
  factors = tensors.pop('rope_freqs.weight', None)
  cfg = config_from_gguf(metadata, tensors)
  if factors is not None:
    scaling = _rope_scaling(factors.read(slice(None)), cfg, path)
    cfg = dataclasses.replace(cfg, rope_scaling=scaling)
  cfg = dataclasses.replace(cfg, **overrides)
  tokenizer = tokenizer_from_gguf(metadata)
  check_vocabulary(tokenizer, cfg.vocab_size, path)
  rules = RULES
  if metadata.architecture == 'llama':
    rules = {rule.name: rule for rule in (*RULES, *_INTERLEAVED)}.values()
  readers = tensor_table.match(cfg, rules, tensors, path)
  return cfg, tensor_table.fill(cfg, readers, mesh, path), tokenizer


_KINDS = {str: 'text', int: 'a whole number', bool: 'true or false'}


class _Metadata:
  """Key-value pairs of a file, each of the kind that is asked for."""

  def __init__(self, fields: Mapping[str, Any], path: str):
    self.fields, self.path = fields, path
    self.architecture = ''  # of which 'ARCH.' in a key is the beginning
    self.architecture = self.need('general.architecture', str)

  def get(
    self, key: str, kind: type, default: Any = None, many: bool = False
  ) -> Any:
    """A value of that type, or with `many` a list; default if it is missing."""
    key = self._full(key)
    if key not in self.fields:
      return default
    value = self._value(key)
    if isinstance(value, list) is not many or any(
      type(x) is not kind for x in (value if many else [value])
    ):
      what = f'a list, each {_KINDS[kind]}' if many else _KINDS[kind]
      raise ValueError(f'{self.path}: {key} = {value!r:.80} is not {what}')
    return value

  def need(self, key: str, kind: type, many: bool = False) -> Any:
    """Like `get`, but raises ValueError if the key is missing."""
    value = self.get(key, kind, None, many)
    if value is None:
      raise ValueError(f'{self.path} has no metadata {self._full(key)}')
    return value

  def number(self, key: str, default: float | None = None) -> Any:
    """A positive number; default is for one that is missing."""
    key = self._full(key)
    if key not in self.fields and default is None:
      raise ValueError(f'{self.path} has no metadata {key}')
    value = self._value(key) if key in self.fields else default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
      raise ValueError(f'{self.path}: {key} = {value!r:.80} is not a number')
    if not 0 < value < math.inf:
      raise ValueError(f'{self.path}: {key} = {value!r:.80} is not positive')
    return value

  def _full(self, key: str) -> str:
    return key.replace('ARCH.', f'{self.architecture}.')

  def _value(self, key: str) -> Any:
    try:
      return self.fields[key].contents()
    except UnicodeDecodeError as error:
      raise ValueError(f'{self.path}: {key} is not UTF-8: {error}') from None


def _stored(gguf, tensor, path: str) -> StoredTensor:
  def read(part):
    # Rows are quantised one by one; a vector is small.
    data = tensor.data[part] if len(tensor.shape) > 1 else tensor.data
    try:
      numbers = gguf.quants.dequantize(data, tensor.tensor_type)
    except NotImplementedError:
      raise ValueError(
        f'{path}: {tensor.name} has type {tensor.tensor_type.name}, which '
        'the package gguf does not read'
      ) from None
    return numbers if len(tensor.shape) > 1 else numbers[part]

  read(slice(0, 1))  # an unknown type is an error before anything is loaded
  return StoredTensor(
    tuple(int(n) for n in reversed(tensor.shape)),
    path,
    read,
  )


def _check_places(reader: Any, size: int) -> None:
  """Raises ValueError unless the tensors lie apart and fill a file of size."""
  end, before = reader.data_offset, ''
  for tensor in sorted(reader.tensors, key=lambda t: t.data_offset):
    if tensor.data_offset < end:
      raise ValueError(f'{tensor.name} begins within {before}')
    if (tensor.data_offset - reader.data_offset) % reader.alignment:
      raise ValueError(f'{tensor.name} is not aligned')
    end, before = tensor.data_offset + int(tensor.n_bytes), tensor.name
  # A wrong alignment would shift all numbers.
  if not 0 <= size - end < reader.alignment:
    raise ValueError(f'{before} ends at {end} of {size} bytes')


def config_from_gguf(
  metadata: _Metadata, tensors: Mapping[str, StoredTensor]
) -> ModelConfig:
  """Metadata -> ModelConfig.

  Raises: ValueError for another architecture or a feature that this decoder
    lacks.
  """
  name, path = metadata.architecture, metadata.path
  if name not in ARCHITECTURES:
    raise ValueError(
      f'{path}: architecture {name!r} is none of ' + ', '.join(ARCHITECTURES)
    )
  scaling = metadata.get('ARCH.rope.scaling.type', str, 'none')
  if scaling != 'none':
    raise ValueError(f'{path}: rope.scaling.type {scaling!r} not implemented')
  if metadata.get('ARCH.expert_count', int, 0):
    raise ValueError(f'{path}: mixtures of experts are not implemented')
  width = metadata.number('ARCH.embedding_length')
  num_heads = metadata.number('ARCH.attention.head_count')
  if 'token_embd.weight' not in tensors:
    raise ValueError(f'{path}: token_embd.weight is missing')
  fields: dict[str, Any] = dict(
    vocab_size=tensors['token_embd.weight'].shape[0],
    num_layers=metadata.need('ARCH.block_count', int),
    width=width,
    num_heads=num_heads,
    num_kv_heads=metadata.get('ARCH.attention.head_count_kv', int, num_heads),
    head_size=metadata.get(
      'ARCH.attention.key_length', int, width // num_heads
    ),
    mlp_size=metadata.need('ARCH.feed_forward_length', int),
    rope_theta=float(metadata.number('ARCH.rope.freq_base', 10000.0)),
    norm_eps=_short(metadata.number('ARCH.attention.layer_norm_rms_epsilon')),
    tied_embeddings='output.weight' not in tensors,
    max_positions=metadata.need('ARCH.context_length', int),
    **ARCHITECTURES[name],
  )
  try:
    return ModelConfig(**fields)
  except ValueError as error:
    raise ValueError(f'{path}: {error}') from None


def _short(value: float) -> float:
  """1e-5 instead of 9.999999747378752e-06: float32 as it was typed."""
  return float(str(np.float32(value)))


def _rope_scaling(
  divisors: np.ndarray, cfg: ModelConfig, path: str
) -> rope.RopeScaling:
  """Llama 3's scaling, of which files keep only each frequency's divisor."""
  plain = rope.frequencies(cfg)
  if divisors.shape != plain.shape or not (divisors > 0).all():
    raise ValueError(f'{path}: rope_freqs.weight is not the scaling of Llama 3')
  scaling = rope.RopeScaling(
    factor=float(divisors.max()),
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_positions=8192,
  )
  scaled = rope.frequencies(dataclasses.replace(cfg, rope_scaling=scaling))
  if not np.allclose(np.asarray(plain / scaled), divisors, rtol=1e-4):
    raise ValueError(f'{path}: rope_freqs.weight is not the scaling of Llama 3')
  return scaling


def tokenizer_from_gguf(metadata: _Metadata) -> HFTokenizer:
  """The byte-level BPE tokenizer and chat template of the metadata.

  Raises: ValueError for another kind of tokenizer or of pre-tokenizer.
  """
  path = metadata.path
  model = metadata.need('tokenizer.ggml.model', str)
  if model != 'gpt2':
    raise ValueError(
      f'{path}: tokenizer.ggml.model {model!r} is not implemented, only gpt2 '
      '(byte-level BPE)'
    )
  pre = metadata.get('tokenizer.ggml.pre', str, 'default')
  if pre not in _SPLITS:
    raise ValueError(
      f'{path}: tokenizer.ggml.pre {pre!r} is none of ' + ', '.join(_SPLITS)
    )
  tokens = metadata.need('tokenizer.ggml.tokens', str, many=True)
  merges = metadata.need('tokenizer.ggml.merges', str, many=True)
  types = metadata.get(
    'tokenizer.ggml.token_type', int, [1] * len(tokens), many=True
  )
  eos_ids = [
    metadata.get(f'tokenizer.ggml.{name}_token_id', int)
    for name in ('eos', 'eot', 'eom')
  ]
  eos_ids = tuple(dict.fromkeys(i for i in eos_ids if i is not None))
  if not eos_ids:
    raise ValueError(f'{path} has no metadata tokenizer.ggml.eos_token_id')
  bos_id = metadata.get('tokenizer.ggml.bos_token_id', int)
  # As llama.cpp: Llama 3 begins every text by <|begin_of_text|>.
  adds_bos = metadata.get('tokenizer.ggml.add_bos_token', bool, pre in _LLAMA_3)
  with library_errors(f'{path}: the tokenizer is damaged'):
    backend = byte_level_bpe(pre, tokens, merges, types)
    if adds_bos and bos_id is not None:
      _begin_by(backend, bos_id)
  return HFTokenizer(
    backend,
    eos_ids=eos_ids,
    pad_id=metadata.get('tokenizer.ggml.padding_token_id', int, eos_ids[0]),
    bos_id=bos_id,
    chat_template=metadata.get('tokenizer.chat_template', str),
  )


def _begin_by(backend: Any, bos_id: int) -> None:
  """A post-processor that puts the token in front, as tokenizer.json has it."""
  lib = require('tokenizers', 'the tokenizer of a .gguf file')
  token = backend.id_to_token(bos_id)
  backend.post_processor = lib.processors.TemplateProcessing(
    single=[token, '$A'], special_tokens=[(token, bos_id)]
  )


def byte_level_bpe(
  pre: str, tokens: Sequence[str], merges: Sequence[str], types: Sequence[int]
):
  """A `tokenizers` object from lists.

  Args:
    pre: how texts are split, a key of _SPLITS.
    tokens: by id, in GPT-2's spelling of bytes.
    merges: two tokens joined by a space each, best first.
    types: of each token; control tokens are special.
  """
  lib = require('tokenizers', 'the tokenizer of a .gguf file')
  backend = lib.Tokenizer(
    lib.models.BPE(
      vocab={token: i for i, token in enumerate(tokens)},
      merges=[tuple(merge.split(' ', 1)) for merge in merges],
      ignore_merges=pre in _LLAMA_3,
    )
  )
  split = _SPLITS[pre]
  if split is None or split == 'digits':
    steps = [lib.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if split == 'digits':
      steps.insert(0, lib.pre_tokenizers.Digits(individual_digits=True))
  else:
    steps = [
      lib.pre_tokenizers.Split(lib.Regex(split), 'isolated'),
      lib.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
  backend.pre_tokenizer = lib.pre_tokenizers.Sequence(steps)
  backend.decoder = lib.decoders.ByteLevel()
  if pre == 'qwen2':
    backend.normalizer = lib.normalizers.NFC()
  for kind in (_CONTROL, _USER_DEFINED):
    special = kind == _CONTROL
    backend.add_tokens(
      [
        lib.AddedToken(token, special=special, normalized=False)
        for token, found in zip(tokens, types, strict=True)
        if found == kind
      ]
    )
  return backend
