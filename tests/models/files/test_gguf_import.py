"""GGUF files, written here with the gguf library and read back."""

import dataclasses
import struct
import time

import gguf
import jax
import numpy as np
import pytest

from rl_jax.models import rope
from rl_jax.models.files import gguf_import, hf_export, placement
from rl_jax.models.rope import RopeScaling
from rl_jax.models.transformer import ModelConfig

TOKENS = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', *'abc0123', 'ab', '12']
CONFIG = ModelConfig(
  vocab_size=len(TOKENS),
  num_layers=2,
  width=32,
  num_heads=4,
  num_kv_heads=2,
  head_size=8,
  mlp_size=64,
  rope_theta=10000.0,
  norm_eps=1e-5,
  max_positions=64,
)
NAMES = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  'lm_head': 'output',
  'model.layers': 'blk',
  'input_layernorm': 'attn_norm',
  'post_attention_layernorm': 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
}


def interleave(weight, heads):
  """The order that llama.cpp's converter gives query and key rows (permute)."""
  split = weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1)
  return split.swapaxes(1, 2).reshape(weight.shape)


def tensors_of(cfg, params, architecture):
  """The tensors as a converter of llama.cpp names and orders them."""
  tensors = {}
  for name, array in hf_export.hf_tensors(cfg, params['model'], 'float32'):
    for theirs, ours in NAMES.items():
      name = name.replace(theirs, ours)
    if architecture == 'llama' and 'attn_q.' in name:
      array = interleave(array, cfg.num_heads)
    if architecture == 'llama' and 'attn_k.' in name:
      array = interleave(array, cfg.num_kv_heads)
    tensors[name] = array
  return tensors


def write(path, cfg, tensors, architecture='llama', pre='smollm', quant=None):
  """A file with the metadata of llama.cpp's converter."""
  writer = gguf.GGUFWriter(path, architecture)
  writer.add_block_count(cfg.num_layers)
  writer.add_context_length(cfg.max_positions)
  writer.add_embedding_length(cfg.width)
  writer.add_feed_forward_length(cfg.mlp_size)
  writer.add_head_count(cfg.num_heads)
  writer.add_head_count_kv(cfg.num_kv_heads)
  writer.add_key_length(cfg.head_size)
  writer.add_rope_freq_base(cfg.rope_theta)
  writer.add_layer_norm_rms_eps(cfg.norm_eps)
  writer.add_tokenizer_model('gpt2')
  writer.add_tokenizer_pre(pre)
  writer.add_token_list(TOKENS)
  writer.add_token_merges(['a b', '1 2'])
  writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
  writer.add_bos_token_id(1)
  writer.add_eos_token_id(2)
  writer.add_eot_token_id(0)
  writer.add_chat_template('{{ bos_token }}{{ messages[0].content }}')
  for name, array in tensors.items():
    if quant is not None and array.ndim == 2:
      array = gguf.quants.quantize(array, quant)
      writer.add_tensor(name, array, raw_dtype=quant)
    else:
      writer.add_tensor(name, array)
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()


FAMILIES = {
  'llama': CONFIG,
  'qwen2': dataclasses.replace(CONFIG, qkv_bias=True, tied_embeddings=False),
  'qwen3': dataclasses.replace(CONFIG, qk_norm=True),
}


@pytest.mark.parametrize('architecture', FAMILIES)
def test_every_family_reads_back(architecture, tmp_path, random_params):
  """E0: float32 files, the rotary permutation of llama undone."""
  cfg = FAMILIES[architecture]
  params = random_params(cfg)
  path = str(tmp_path / 'model.gguf')
  write(path, cfg, tensors_of(cfg, params, architecture), architecture)
  loaded_cfg, loaded, _ = gguf_import.import_gguf(path)
  assert loaded_cfg == cfg
  jax.tree.map(np.testing.assert_array_equal, loaded, params)


def test_quantised_tensors(tmp_path, monkeypatch, random_params):
  """Q8_0 keeps 8 bits of the largest of 32 values; E0 for smaller blocks."""
  params = random_params(CONFIG)
  path = str(tmp_path / 'model.gguf')
  tensors = tensors_of(CONFIG, params, 'llama')
  write(path, CONFIG, tensors, quant=gguf.GGMLQuantizationType.Q8_0)
  _, loaded, _ = gguf_import.import_gguf(path)
  wq, original = (p['model']['layers']['wq'] for p in (loaded, params))
  error = np.abs(wq - original).max()
  assert 0 < error < 4.5 / 127 / 2 * 1.1
  monkeypatch.setattr(placement, 'BLOCK_ELEMENTS', 300)
  _, in_blocks, _ = gguf_import.import_gguf(path)
  jax.tree.map(np.testing.assert_array_equal, in_blocks, loaded)


def test_tokenizer_of_the_metadata(tmp_path, random_params):
  path = str(tmp_path / 'model.gguf')
  write(path, CONFIG, tensors_of(CONFIG, random_params(CONFIG), 'llama'))
  _, _, tokenizer = gguf_import.import_gguf(path)
  ids = tokenizer.encode('<|im_start|>abc12<|im_end|>', control=True)
  pieces = ['<|im_start|>', 'ab', 'c', '1', '2', '<|im_end|>']
  assert [tokenizer.token(i) for i in ids] == pieces
  assert tokenizer.decode(ids) == 'abc12'
  assert (tokenizer.eos_ids, tokenizer.pad_id, tokenizer.bos_id) == (
    (2, 0),
    2,
    1,
  )
  assert tokenizer.chat([{'content': 'c'}]) == '<|im_start|>c'


def test_scaling_of_llama_3_from_the_divisors(tmp_path, random_params):
  scaling = RopeScaling(
    factor=32.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_positions=8192,
  )
  cfg = dataclasses.replace(CONFIG, rope_theta=500000.0, rope_scaling=scaling)
  plain = rope.frequencies(dataclasses.replace(cfg, rope_scaling=None))
  divisors = np.asarray(plain / rope.frequencies(cfg))
  tensors = tensors_of(cfg, random_params(cfg), 'llama')
  path = str(tmp_path / 'model.gguf')
  write(path, cfg, {**tensors, 'rope_freqs.weight': divisors})
  assert gguf_import.import_gguf(path)[0] == cfg
  path = str(tmp_path / 'other.gguf')
  write(path, cfg, {**tensors, 'rope_freqs.weight': divisors[::-1].copy()})
  with pytest.raises(ValueError, match='rope_freqs.weight is not the scaling'):
    gguf_import.import_gguf(path)


@pytest.mark.parametrize(
  'change, message',
  [
    ({'architecture': 'gemma'}, "architecture 'gemma' is none of llama"),
    ({'pre': 'deepseek-llm'}, "tokenizer.ggml.pre 'deepseek-llm' is none of"),
    ({'missing': 'blk.1.ffn_up.weight'}, 'blk.1.ffn_up.weight is missing'),
    ({'missing': 'token_embd.weight'}, 'token_embd.weight is missing'),
  ],
)
def test_errors(change, message, tmp_path, random_params):
  path = str(tmp_path / 'model.gguf')
  tensors = tensors_of(CONFIG, random_params(CONFIG), 'llama')
  tensors.pop(change.pop('missing', None), None)
  write(path, CONFIG, tensors, **change)
  with pytest.raises(ValueError, match=message):
    gguf_import.import_gguf(path)


def test_not_a_gguf_file(tmp_path):
  path = tmp_path / 'model.gguf'
  path.write_bytes(b'something else altogether, long enough for a header')
  with pytest.raises(ValueError, match='is not a readable GGUF file'):
    gguf_import.import_gguf(str(path))


def header(*pairs, tensors=0, count=None):
  """A file of hand-made key-value pairs: (key, type, bytes)."""
  data = b'GGUF' + struct.pack('<IQQ', 3, tensors, count or len(pairs))
  for key, kind, value in pairs:
    data += struct.pack('<Q', len(key)) + key + struct.pack('<I', kind) + value
  return data


def nested(depth):
  """Arrays of one array each, `depth` levels of them."""
  return struct.pack('<IQ', 9, 1) * depth + struct.pack('<IQ', 0, 0)


@pytest.mark.parametrize(
  'data, message',
  [
    (header((b'a', 9, nested(1))), 'an array of arrays'),
    (header((b'a', 9, nested(10**5))), 'an array of arrays'),
    (header((b'a', 9, struct.pack('<IQ', 8, 2**60))), 'before its 11529'),
    (header((b'a', 9, struct.pack('<IQ', 4, 2**62))), 'ends before'),
    (header((b'a', 9, struct.pack('<IQ', 77, 1))), 'unknown type 77'),
    (
      header((b'a', 9, struct.pack('<IQ', 0, 5 << 20) + bytes(5 << 20))),
      '5242880 entries of lists, more than 4194304',
    ),
    (header((b'a', 8, struct.pack('<Q', 2**63))), 'ends before'),
    (header(count=2**62), 'ends before its 46116.* metadata'),
    (header(tensors=2**62), 'ends before its 46116.* tensors'),
    (header()[:9], 'header'),
    (b'', 'header'),
    (b'GGML' + bytes(40), "begins with b'GGML'"),
    (
      header(tensors=1) + struct.pack('<QI', 0, 2**31) + bytes(40),
      'tensor of 2147483648 axes',
    ),
  ],
)
def test_counts_that_the_file_cannot_hold_are_not_followed(
  data, message, tmp_path
):
  """At once, where the library would not return or run out of memory."""
  path = tmp_path / 'model.gguf'
  path.write_bytes(data)
  started = time.monotonic()
  with pytest.raises(
    ValueError, match=f'not a readable GGUF file: .*{message}'
  ):
    gguf_import.import_gguf(str(path))
  assert time.monotonic() - started < 5


def edited(path, old, new):
  """Replaces bytes of a file by as many others."""
  assert len(old) == len(new)
  data = path.read_bytes()
  assert data.count(old) == 1
  path.write_bytes(data.replace(old, new))


def test_values_that_cannot_be_are_refused(tmp_path, random_params):
  """A billion layers, ids beyond the vocabulary, damaged merges."""
  path = tmp_path / 'model.gguf'
  params = random_params(CONFIG)
  write(str(path), CONFIG, tensors_of(CONFIG, params, 'llama'))
  whole = path.read_bytes()

  def number(key, value):
    return key + struct.pack('<II', 4, value)

  for key, old, new, message in (
    (b'llama.block_count', 2, 10**9, r'num_layers = 1000000000 is outside'),
    (b'tokenizer.ggml.eos_token_id', 2, 10**9, 'end token 1000000000 is out'),
    (b'llama.embedding_length', 32, 0, 'embedding_length = 0 is not positive'),
  ):
    path.write_bytes(whole)
    edited(path, number(key, old), number(key, new))
    with pytest.raises(ValueError, match=message):
      gguf_import.import_gguf(str(path))
  path.write_bytes(whole)
  edited(path, b'a b', b'abb')
  with pytest.raises(ValueError, match='model.gguf: the tokenizer is damaged'):
    gguf_import.import_gguf(str(path))


def test_llama_3_begins_plain_prompts(tmp_path, random_params):
  """llama.cpp begins prompts so, unless add_bos_token says otherwise."""
  path = str(tmp_path / 'model.gguf')
  tensors = tensors_of(CONFIG, random_params(CONFIG), 'llama')
  for pre, expected in (('llama-bpe', [1, 3]), ('smollm', [3])):
    write(path, CONFIG, tensors, pre=pre)
    _, _, tokenizer = gguf_import.import_gguf(path)
    assert tokenizer.encode_prompt(('', 'a')) == expected
    assert tokenizer.encode('a') == [3]
