"""Damaged model files: equal weights or a ValueError, in bounded memory."""

import dataclasses
import importlib.util
import os
import pathlib
import shutil
import struct

from hypothesis import strategies as st
import jax
import numpy as np
import pytest
import safetensors.numpy

from rl_jax.models import spec
from rl_jax.models.files import (
  directories,
  gguf_import,
  hf_export,
  model_dir,
  peft,
  tokenizer_files,
)
from rl_jax.models.tokenizer import HFTokenizer, check_vocabulary
from rl_jax.models.transformer import ModelConfig, specs

_PATH = pathlib.Path(__file__).parents[2] / 'random_damage.py'
_SPEC = importlib.util.spec_from_file_location('random_damage', _PATH)
damage = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(damage)

FEW = 10
TOKENS = ['<|end|>', '<|im_start|>', *'abc0123', 'ab', '12']
CONFIG = ModelConfig(
  vocab_size=len(TOKENS),
  num_layers=2,
  width=4,
  num_heads=2,
  num_kv_heads=1,
  head_size=2,
  mlp_size=3,
  max_positions=64,
)
TEMPLATE = '{{ bos_token }}{{ messages[0].content }}'


def random_params(cfg=CONFIG):
  """Every leaf random, norms too."""
  rng = np.random.default_rng(0)
  return jax.tree.map(
    lambda x: rng.normal(size=x.shape).astype(x.dtype),
    spec.abstract(specs(cfg)),
  )


PARAMS = random_params()
WITH_LORA = dataclasses.replace(CONFIG, lora_rank=1, lora_targets=('wq', 'wv'))
LORA = random_params(WITH_LORA)
ADAPTED = np.unique(
  np.concatenate([x.ravel() for x in jax.tree.leaves(LORA['lora'])])
)
NUMBERS = np.unique(
  np.concatenate([x.ravel() for x in jax.tree.leaves(PARAMS)])
)


def tokenizer():
  """Merges of two letters and of two digits."""
  backend = gguf_import.byte_level_bpe(
    'smollm', TOKENS, ['a b', '1 2'], [3, 3] + [1] * (len(TOKENS) - 2)
  )
  return HFTokenizer(
    backend, eos_ids=(0,), pad_id=0, bos_id=1, chat_template=TEMPLATE
  )


def write_sharded(folder):
  """A Hugging Face directory: two files and their index, named templates."""
  hf_export.export_hf(folder, CONFIG, PARAMS, tokenizer())
  whole = os.path.join(folder, 'model.safetensors')
  tensors = safetensors.numpy.load_file(whole)
  tensors['lm_head.weight'] = tensors['model.embed_tokens.weight']
  tensors = sorted(tensors.items())
  os.remove(whole)
  config = directories.read_json(os.path.join(folder, 'tokenizer_config.json'))
  config['chat_template'] = [{'name': 'default', 'template': TEMPLATE}]
  directories.write_json(folder, 'tokenizer_config.json', config)
  table = {}
  for i, part in enumerate((tensors[:9], tensors[9:])):
    table |= {name: f'{i}.safetensors' for name, _ in part}
    path = os.path.join(folder, f'{i}.safetensors')
    safetensors.numpy.save_file(dict(part), path)
  index = {'metadata': {}, 'weight_map': table}
  directories.write_json(folder, 'model.safetensors.index.json', index)


def safetensors_parts(data):
  """(JSON of the header, numbers)."""
  (size,) = struct.unpack('<Q', data[:8])
  return data[8 : 8 + size], data[8 + size :]


@st.composite
def changed_file(draw, folder, name):
  """The bytes of a file of a folder, with a few others."""
  data = pathlib.Path(folder, name).read_bytes()
  header, rest = data, b''
  if name.endswith('.safetensors'):
    header, rest = safetensors_parts(data)
  if not name.endswith('.jinja') and draw(st.booleans()):
    header = draw(damage.changed(header.decode(), JSON_VALUES))
  else:
    header = draw(damage.damaged(header))
  if not rest:
    return header
  size = draw(st.sampled_from([len(header)] * 9 + [0, 2**40, 2**64 - 1]))
  cut = draw(st.sampled_from([len(rest)] * 9 + [0, 3, len(rest) - 1]))
  return struct.pack('<Q', size) + header + rest[:cut]


# What files of models have at other places.
JSON_VALUES = damage.VALUES | st.sampled_from(
  [['a'], {'a': 1}, {'content': 3}, [[0]], [1.5], [{'name': []}], [None]]
  + ['Qwen2ForCausalLM', 'llama3', 'rl_jax.CharTokenizer', '0.safetensors']
  + ['.', '0.safetensors/x', '{{ x.y.z }}', '{% for', 10**9, 'float16']
  + [{'rope_type': 'llama3', 'factor': 0}, 'ByteLevel', {'type': 'Sequence'}]
)


def load(path, kept):
  """Reads a model; whatever is read has the weights of `kept` and a prompt.

  A changed configuration may split them otherwise, or read the copy of the
  embedding, so they are compared as a set.
  """
  cfg, params, read = model_dir.load_any(path)
  found = [np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(params)]
  np.testing.assert_array_equal(np.unique(np.concatenate(found)), kept)
  ids = damage.outcome(read.encode, 'ab12') or ()
  assert all(0 <= i < cfg.vocab_size for i in (*ids, *read.eos_ids))
  assert isinstance(read.decode([0, 5, 10**6]), str)
  return read


def folder_loads(directory, example):
  """A copy of the folder in which one file is another."""
  folder, name, data = example
  path = damage.new_path(directory, '')
  shutil.copytree(folder, path)
  pathlib.Path(path, name).write_bytes(data)
  read = damage.outcome(load, path, NUMBERS)
  if read is not None and getattr(read, 'chat_template', TEMPLATE) != TEMPLATE:
    damage.outcome(read.chat, [{'role': 'user', 'content': 'a'}])


def files_of(folder):
  """(folder, name, bytes) of one changed file."""
  names = sorted(os.listdir(folder))
  names.remove(directories.MARKER)
  return st.sampled_from(names).flatmap(
    lambda name: st.tuples(
      st.just(folder), st.just(name), changed_file(folder, name)
    )
  )


# GGUF: the type of a value, and how it is packed.
PACKED = {0: 'B', 1: 'b', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 12: 'd'}
TEXT, ARRAY = 8, 9
METADATA = [
  ('general.architecture', TEXT, 'llama'),
  ('llama.block_count', 4, CONFIG.num_layers),
  ('llama.context_length', 4, CONFIG.max_positions),
  ('llama.embedding_length', 4, CONFIG.width),
  ('llama.feed_forward_length', 4, CONFIG.mlp_size),
  ('llama.attention.head_count', 4, CONFIG.num_heads),
  ('llama.attention.head_count_kv', 4, CONFIG.num_kv_heads),
  ('llama.attention.key_length', 4, CONFIG.head_size),
  ('llama.attention.layer_norm_rms_epsilon', 6, 1e-6),
  ('llama.rope.freq_base', 6, 10000.0),
  ('llama.rope.scaling.type', TEXT, 'none'),
  ('llama.expert_count', 4, 0),
  ('tokenizer.ggml.model', TEXT, 'gpt2'),
  ('tokenizer.ggml.pre', TEXT, 'smollm'),
  ('tokenizer.ggml.tokens', ARRAY, (TEXT, TOKENS)),
  ('tokenizer.ggml.merges', ARRAY, (TEXT, ['a b', '1 2'])),
  ('tokenizer.ggml.token_type', ARRAY, (5, [3, 3] + [1] * 9)),
  ('tokenizer.ggml.bos_token_id', 4, 1),
  ('tokenizer.ggml.eos_token_id', 4, 0),
  ('tokenizer.ggml.padding_token_id', 4, 0),
  ('tokenizer.ggml.add_bos_token', 7, False),
  ('tokenizer.chat_template', TEXT, TEMPLATE),
  ('general.alignment', 4, 32),
]


def pack(kind, value):
  """A value of GGUF as bytes."""
  if kind == TEXT:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack('<Q', len(data)) + data
  if kind == ARRAY:
    inner, values = value
    items = b''.join(pack(inner, x) for x in values)
    return struct.pack('<IQ', inner, len(values)) + items
  return struct.pack('<' + PACKED[kind], value)


def gguf_values():
  """(type, value) that a file may have at any place."""
  whole = st.sampled_from([0, 1, 2, 3, 5, 11, 64, 100])
  real = st.sampled_from([0.0, -1.0, 1.5, float('inf'), float('nan'), 1e30])
  text = st.sampled_from([b'', b'qwen2', b'llama-bpe', b'\xff', b'a b', b'{%'])
  plain = st.one_of(
    st.tuples(st.sampled_from([0, 1, 4, 5, 10]), whole),
    st.sampled_from([(5, -1), (10, 2**63), (4, 10**9), (7, True), (7, False)]),
    st.tuples(st.sampled_from([6, 12]), real),
    st.tuples(st.just(TEXT), text),
  )

  def array(x):
    return (ARRAY, (x[0], [x[1]] * x[2]))

  counts = st.sampled_from([0, 1, 2, 11, 12])
  arrays = st.tuples(plain, counts).map(lambda x: array((*x[0], x[1])))
  return plain | arrays


def gguf_parts(pairs):
  """(header, numbers) of a file with these keys, types and values."""
  header = [
    pack(TEXT, key) + struct.pack('<I', kind) + pack(kind, value)
    for key, kind, value in pairs
  ]
  data, tensors = b'', gguf_tensors()
  for name, array in tensors.items():
    sizes = (array.ndim, *reversed(array.shape))
    header += [pack(TEXT, name), struct.pack(f'<I{array.ndim}Q', *sizes)]
    header += [struct.pack('<IQ', 0, len(data))]
    data += array.tobytes() + bytes(-array.nbytes % 32)
  counts = struct.pack('<IQQ', 3, len(tensors), len(pairs))
  return b'GGUF' + counts + b''.join(header), data


@st.composite
def gguf_files(draw):
  """Metadata in which a few values are others, gone or doubled."""
  pairs = list(METADATA)
  for _ in range(draw(st.integers(0, 2))):
    at = draw(st.integers(0, len(pairs) - 1))
    new = [(pairs[at][0], *draw(gguf_values()))]
    action = draw(st.integers(0, 9))
    pairs[at : at + 1] = [[], [pairs[at], *new]][action] if action < 2 else new
  head, data = gguf_parts(pairs)
  if draw(st.booleans()):
    head = draw(damage.damaged(head))
  file = head + bytes(-len(head) % 32) + data
  return file[: draw(st.sampled_from([None] * 9 + [-1, len(head)]))]


def gguf_tensors():
  """The names of converters, in this order of numbers, which no test needs."""
  names = {
    **{'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm'},
    **{'model.layers': 'blk', 'input_layernorm': 'attn_norm'},
    **{'post_attention_layernorm': 'ffn_norm', 'self_attn.o': 'attn_output'},
    **{'attn_output_proj': 'attn_output', 'self_attn.': 'attn_'},
    **{'mlp.': 'ffn_', '_proj': ''},
  }
  tensors = {}
  for name, array in hf_export.hf_tensors(CONFIG, PARAMS['model'], 'float32'):
    for theirs, ours in names.items():
      name = name.replace(theirs, ours)
    tensors[name] = np.ascontiguousarray(array)
  return tensors


def gguf_loads(directory, data):
  """One file, which another program may have written."""
  path = damage.written(directory, '.gguf', data)
  damage.outcome(load, path, NUMBERS)
  os.remove(path)


def adapters_load(directory, example):
  """A copy of the folder of adapters in which one file is another."""
  folder, name, data = example
  path = damage.new_path(directory, '')
  shutil.copytree(folder, path)
  pathlib.Path(path, name).write_bytes(data)
  found = damage.outcome(peft.import_adapters, path, CONFIG)
  if found is not None:
    leaves = [np.ravel(x) for x in jax.tree.leaves(found[1])]
    np.testing.assert_array_equal(np.unique(np.concatenate(leaves)), ADAPTED)


@pytest.fixture(scope='module')
def cases(tmp_path_factory):
  """The damage that is made, the condition that must hold, and the count."""
  place = tmp_path_factory.mktemp('whole')
  ours, theirs = str(place / 'ours'), str(place / 'theirs')
  model_dir.save_model(ours, CONFIG, PARAMS, tokenizer())
  write_sharded(theirs)
  header, data = gguf_parts(METADATA)
  whole = place / 'whole.gguf'
  whole.write_bytes(header + bytes(-len(header) % 32) + data)
  adapters = str(place / 'adapters')
  peft.export_adapters(adapters, WITH_LORA, LORA, 'base')
  peft.import_adapters(adapters, CONFIG)
  for path in (ours, theirs, str(whole)):
    load(path, NUMBERS)  # what is damaged below can be read
  return {
    'ours': (files_of(ours), folder_loads, 400),
    'theirs': (files_of(theirs), folder_loads, 600),
    'gguf': (gguf_files(), gguf_loads, 600),
    'adapters': (files_of(adapters), adapters_load, 400),
  }


NAMES = ('ours', 'theirs', 'gguf', 'adapters')


@pytest.mark.parametrize('name', NAMES)
def test_a_few(name, cases, tmp_path):
  made, holds, _ = cases[name]
  damage.run(made, holds, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', NAMES)
def test_many(name, cases, tmp_path):
  damage.run(*cases[name], tmp_path)


BROKEN = {  # of tokenizer.json: what the library does not notice, or panics at
  'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': ''},
  'pre_tokenizer': {'type': 'FixedLength', 'length': 0},
  'decoder': {'type': 'Strip', 'content': 'a', 'start': 3, 'stop': 100},
  'model': {'type': 'BPE', 'vocab': {'a': 2**32 - 1}, 'merges': []},
  'added_tokens': [{'id': 3, 'content': 5}],
}


@pytest.mark.parametrize('part', BROKEN)
def test_panics_of_the_tokenizer_are_errors(part, tmp_path, capfd):
  """The panics of its Rust code are not exceptions of Python."""
  del capfd  # the library prints where it panicked
  folder = str(tmp_path)
  tokenizer_files.save_tokenizer(tokenizer(), folder)
  parts = directories.read_json(os.path.join(folder, 'tokenizer.json'))
  parts[part] = BROKEN[part]
  directories.write_json(folder, 'tokenizer.json', parts)
  with pytest.raises(ValueError, match='tokenizer'):
    read = tokenizer_files.load_tokenizer(folder)
    check_vocabulary(read, len(TOKENS), folder)
    read.encode('ab12')


def test_numbers_of_a_gguf_file_are_not_shifted(tmp_path):
  """An alignment that lost a bit, or tensors that share bytes."""
  pairs = [p if p[0] != 'general.alignment' else (*p[:2], 1) for p in METADATA]
  header, data = gguf_parts(pairs)
  path = tmp_path / 'model.gguf'
  path.write_bytes(header + bytes(-len(header) % 32) + data)
  with pytest.raises(ValueError, match='ends at [0-9]* of'):
    model_dir.load_any(str(path))
  header, data = gguf_parts(METADATA)
  place = struct.pack('<IQ', 0, 192)  # of the second tensor
  assert header.count(place) == 1
  header = header.replace(place, struct.pack('<IQ', 0, 160))
  path.write_bytes(header + bytes(-len(header) % 32) + data)
  with pytest.raises(ValueError, match='begins within token_embd.weight'):
    model_dir.load_any(str(path))
