"""Hugging Face directories: errors, streaming, and exact round trips."""

import dataclasses
import json
import os
import pathlib
import shutil

import jax
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from rl_jax.models import lora
from rl_jax.models.files import hf_export, hf_import, tensor_table
from rl_jax.models.rope import LinearScaling, RopeScaling, YarnScaling
from rl_jax.models.tokenizer import ByteTokenizer, CharTokenizer
from rl_jax.models.transformer import ModelConfig

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden'
SIZES = dict(
  vocab_size=260,
  num_layers=3,
  width=12,
  num_heads=4,
  num_kv_heads=2,
  head_size=6,
  mlp_size=10,
  max_positions=64,
)
GEMMA = dict(
  activation='gelu_tanh',
  norm_offset=True,
  post_norms=True,
  scaled_embeddings=True,
)
SCALING = RopeScaling(
  factor=8.0,
  low_freq_factor=1.0,
  high_freq_factor=4.0,
  original_max_positions=32,
)
CONFIGS = {
  'llama': ModelConfig(**SIZES, tied_embeddings=False, rope_scaling=SCALING),
  'smollm2': ModelConfig(**SIZES, rope_theta=100000.0, norm_eps=1e-5),
  'qwen2': ModelConfig(**SIZES, qkv_bias=True, tied_embeddings=False),
  'qwen3': ModelConfig(**SIZES, qk_norm=True),
  'bfloat16': ModelConfig(**SIZES, param_dtype='bfloat16'),
  'mistral': ModelConfig(**SIZES, window=7, windowed=(0, 1, 2)),
  'qwen2_window': ModelConfig(
    **SIZES,
    qkv_bias=True,
    window=7,
    windowed=(2,),
    rope_scaling=YarnScaling(
      factor=4.0, original_max_positions=16, attention_factor=1.1
    ),
  ),
  'gemma2': ModelConfig(
    **SIZES,
    **GEMMA,
    window=7,
    windowed=(0, 2),
    attention_cap=5.0,
    logit_cap=3.0,
    query_pre_attn_scalar=7.0,
  ),
  'gemma3': ModelConfig(
    **SIZES,
    **GEMMA,
    qk_norm=True,
    window=7,
    windowed=(0, 1),
    window_rope_theta=100.0,
    rope_scaling=LinearScaling(factor=8.0),
    query_pre_attn_scalar=6.0,
  ),
  'qwen3_moe': ModelConfig(
    **SIZES,
    qk_norm=True,
    num_experts=5,
    experts_per_token=2,
    normalized_gates=True,
  ),
  'olmoe': ModelConfig(
    **{**SIZES, 'num_heads': 2, 'num_kv_heads': 1},
    qk_norm=True,
    qk_norm_whole=True,
    num_experts=3,
    experts_per_token=3,
  ),
}


@pytest.mark.parametrize('name', CONFIGS)
def test_import_of_export_is_the_identity(
  name, tmp_path, random_params, assert_same_tree
):
  """E0, for the configuration and every parameter."""
  cfg = CONFIGS[name]
  params = random_params(cfg)
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, ByteTokenizer())
  loaded_cfg, loaded, tokenizer = hf_import.import_hf(
    out, param_dtype=cfg.param_dtype
  )
  assert loaded_cfg == cfg
  assert tokenizer == ByteTokenizer()
  assert_same_tree(loaded, params)


def test_export_merges_adapters_and_drops_the_value_head(
  tmp_path, random_params, assert_same_tree
):
  """E0 against lora.merge."""
  cfg = dataclasses.replace(CONFIGS['qwen3'], lora_rank=2, value_head=True)
  params = random_params(cfg)
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, ByteTokenizer())
  _, loaded = hf_import.import_weights(out)
  assert_same_tree(loaded, {'model': lora.merge(params, cfg)['model']})
  change = loaded['model']['layers']['wq'] - params['model']['layers']['wq']
  assert np.abs(change).max() > 0.1


def test_export_rounds_only_on_request(
  tmp_path, random_params, assert_same_tree
):
  cfg = CONFIGS['smollm2']
  params = random_params(cfg)
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, ByteTokenizer(), dtype='bfloat16')
  _, loaded = hf_import.import_weights(out)
  rounded = jax.tree.map(
    lambda x: np.asarray(x).astype('bfloat16').astype('float32'), params
  )
  assert_same_tree(loaded, rounded)


def test_no_architecture_for_biases_with_norms():
  cfg = ModelConfig(**SIZES, qkv_bias=True, qk_norm=True)
  with pytest.raises(ValueError, match='no Hugging Face architecture'):
    hf_export.config_to_hf(cfg, 'float32')


def test_rearrange_by_hand_and_back():
  """Two heads of size 2 over width 3: column d of row (h, k) -> [d, h, k]."""
  size = {'H': 2, 'K': 2, 'D': 3, 'R': 1, 'C': 2}
  matrix = np.arange(12).reshape(4, 3)
  moved = tensor_table.rearrange(matrix, 'HK D', 'D H K', size)
  assert moved[2].tolist() == [[2, 5], [8, 11]]
  back = tensor_table.rearrange(moved, 'D H K', 'HK D', size)
  np.testing.assert_array_equal(back, matrix)


def copy_golden(family, tmp_path):
  """A golden directory that a test may damage."""
  return pathlib.Path(shutil.copytree(GOLDEN / family, tmp_path / family))


def edit_weights(directory, edit):
  """Applies a function to the dict of tensors of the file."""
  path = directory / 'model.safetensors'
  tensors = safetensors.numpy.load_file(path)
  edit(tensors)
  safetensors.numpy.save_file(tensors, path)


def rename(tensors):
  tensors['model.layers.1.mlp.surplus'] = tensors.pop('model.norm.weight')


def transpose(tensors):
  name = 'model.layers.0.self_attn.k_proj.weight'
  tensors[name] = np.ascontiguousarray(tensors[name][:, :8])


def quantise(tensors):
  tensors['model.norm.weight'] = tensors['model.norm.weight'].astype(np.int8)


@pytest.mark.parametrize(
  'edit, message',
  [
    (rename, r'model.norm.weight is missing\n  model.layers.1.mlp.surplus '),
    (transpose, r'0.self_attn.k_proj.weight \(.*\) has shape \(16, 8\), not'),
    (quantise, r'model.norm.weight \(.*model.safetensors\) has type I8'),
  ],
)
def test_tensor_errors_name_tensor_and_file(edit, message, tmp_path):
  directory = copy_golden('llama', tmp_path)
  edit_weights(directory, edit)
  with pytest.raises(ValueError, match=message):
    hf_import.import_weights(directory)


def test_many_problems_are_listed_briefly(tmp_path):
  directory = copy_golden('llama', tmp_path)
  edit_weights(directory, lambda tensors: tensors.clear())
  with pytest.raises(ValueError, match=r'embed_tokens(.|\n)*and 13 more') as e:
    hf_import.import_weights(directory)
  assert str(e.value).count('\n') < 12


def test_damaged_and_missing_files(tmp_path):
  directory = copy_golden('smollm2', tmp_path)
  shard = directory / 'model-00002-of-00003.safetensors'
  shard.write_bytes(shard.read_bytes()[:1000])
  with pytest.raises(ValueError, match='00002-of-00003.safetensors is damaged'):
    hf_import.import_weights(directory)
  shard.unlink()
  with pytest.raises(ValueError, match='00002-of-00003.safetensors does not'):
    hf_import.import_weights(directory)
  (directory / 'config.json').unlink()
  with pytest.raises(ValueError, match='config.json does not exist'):
    hf_import.import_weights(directory)


def test_bfloat16_shards_are_read_exactly(tmp_path):
  """E0: three bfloat16 files, float32 parameters."""
  cfg, params = hf_import.import_weights(GOLDEN / 'smollm2')
  assert cfg.param_dtype == 'float32'
  raw = {}
  for path in sorted((GOLDEN / 'smollm2').glob('*.safetensors')):
    raw |= safetensors.numpy.load_file(path)
  down = raw['model.layers.1.mlp.down_proj.weight']
  assert down.dtype == ml_dtypes.bfloat16
  ours = np.asarray(params['model']['layers']['w_down'][1])
  np.testing.assert_array_equal(ours, down.T.astype(np.float32))


def test_tied_head_may_be_stored_twice_but_not_differ(tmp_path):
  directory = copy_golden('qwen3', tmp_path)
  name = 'model.embed_tokens.weight'
  edit_weights(directory, lambda t: t.update({'lm_head.weight': t[name]}))
  hf_import.import_weights(directory)
  edit_weights(directory, lambda t: t.update({'lm_head.weight': t[name] + 1}))
  with pytest.raises(ValueError, match='lm_head.weight.*differs from the emb'):
    hf_import.import_weights(directory)


@pytest.mark.parametrize(
  'change, message',
  [
    ({'architectures': ['GemmaForCausalLM']}, 'GemmaForCausalLM is none of'),
    ({'hidden_act': 'gelu'}, "hidden_act = 'gelu' is not implemented"),
    ({'attention_bias': True}, 'attention_bias = True'),
    ({'quantization_config': {'bits': 4}}, 'quantization_config'),
    ({'layer_types': ['chunked_attention'] * 2}, 'layer_types = .*chunked'),
    ({'layer_types': ['full_attention']}, 'expected 2 of'),
    ({'layer_types': ['sliding_attention'] * 2}, 'without sliding_window'),
    ({'rope_parameters': {'rope_type': 'longrope'}}, "'longrope' is not impl"),
    ({'hidden_size': None}, 'has no hidden_size'),
  ],
)
def test_configurations_that_are_refused(change, message):
  path = GOLDEN / 'llama' / 'config.json'
  config = {**json.loads(path.read_text()), **change}
  with pytest.raises(ValueError, match=message):
    hf_import.config_from_hf(config, str(path))


@pytest.mark.parametrize(
  ('family', 'older', 'removed'),
  [
    ('mistral', {}, ()),
    ('gemma2', {}, ('layer_types', 'final_logit_softcapping')),
    ('gemma2', {}, ('final_logit_softcapping', 'tie_word_embeddings')),
    ('gemma3', {}, ('tie_word_embeddings',)),
    (
      'gemma3',
      {
        'sliding_window_pattern': 2,
        'rope_theta': 10000.0,
        'rope_local_base_freq': 100.0,
        'rope_scaling': {'rope_type': 'linear', 'factor': 8.0},
      },
      ('layer_types', 'rope_parameters'),
    ),
  ],
)
def test_files_of_version_4_mean_the_same(family, older, removed):
  """Without a list of layers, and with the default of the logits' cap, 30."""
  path = GOLDEN / family / 'config.json'
  config = json.loads(path.read_text())
  new = hf_import.config_from_hf(config, str(path))
  old = {k: v for k, v in {**config, **older}.items() if k not in removed}
  found = hf_import.config_from_hf(old, str(path))
  if family == 'gemma2':
    assert found.logit_cap == 30.0
    found = dataclasses.replace(found, logit_cap=new.logit_cap)
  assert found == new


def test_a_window_without_an_architecture_is_refused():
  """Llama has none, and Mistral has one in all layers."""
  cfg = ModelConfig(**SIZES, window=7, windowed=(0, 2))
  with pytest.raises(ValueError, match='no Hugging Face architecture'):
    hf_export.config_to_hf(cfg, 'float32')


def test_both_generations_of_rope_fields_read_alike():
  """transformers 4 wrote rope_theta and rope_scaling, 5 rope_parameters."""
  config = json.loads((GOLDEN / 'llama' / 'config.json').read_text())
  new = hf_import.config_from_hf(config, 'x')
  rope = config.pop('rope_parameters')
  config |= {'rope_theta': rope.pop('rope_theta'), 'rope_scaling': rope}
  assert hf_import.config_from_hf(config, 'x') == new
  assert new.rope_scaling.original_max_positions == 64
  assert new.rope_theta == 1000.0


def test_tokenizer_must_fit_and_adapters_are_not_in_the_file(
  tmp_path, random_params
):
  out = str(tmp_path / 'out')
  cfg = CONFIGS['qwen3']
  many = CharTokenizer(''.join(map(chr, range(1000, 1300))))
  hf_export.export_hf(out, cfg, random_params(cfg), many)
  with pytest.raises(ValueError, match='302 ids, the model has 260'):
    hf_import.import_hf(out)
  with pytest.raises(ValueError, match="'value_head/w'.*initialise"):
    hf_import.import_weights(out, value_head=True)


@pytest.mark.parametrize(
  'change, message',
  [
    ({'num_hidden_layers': 10**9}, r'num_layers = 1000000000 is outside'),
    ({'num_hidden_layers': '2'}, "num_layers = '2' is not of type int"),
    ({'num_hidden_layers': True}, 'num_layers = True is not of type int'),
    ({'hidden_size': [64]}, r'width = .* is not of type int'),
    ({'num_attention_heads': 0}, r'num_heads = 0 is outside'),
    ({'num_key_value_heads': 0}, r'num_kv_heads = 0 is outside'),
    ({'head_dim': 0}, r'head_size = 0 is outside'),
    ({'rope_parameters': None, 'rope_theta': 0}, 'rope_theta = 0.0 is outside'),
    ({'rope_parameters': {'rope_theta': 0}}, 'rope_theta = 0.0 is outside'),
    ({'rope_parameters': None, 'rope_theta': 1e400}, 'rope_theta = inf is'),
    (
      {'rope_scaling': {'type': 'yarn', 'factor': 0}, 'rope_parameters': None},
      'YarnScaling.factor = 0.0 is outside',
    ),
    (
      {
        'rope_scaling': {'type': 'yarn', 'factor': 2.0, 'beta_fast': 0},
        'rope_parameters': None,
      },
      'YarnScaling.beta_fast = 0.0 is outside',
    ),
    ({'rope_parameters': {'rope_type': 'llama3'}}, "damaged: KeyError: 'fac"),
    ({'rope_parameters': [1]}, 'damaged: AttributeError'),
    ({'architectures': 3}, 'damaged: TypeError'),
    ({'tie_word_embeddings': 'yes'}, "'yes' is not of type bool"),
  ],
)
def test_damaged_configurations_are_refused_at_once(change, message):
  """With the name of the file, and before anything is read for them."""
  path = GOLDEN / 'llama' / 'config.json'
  config = {**json.loads(path.read_text()), **change}
  with pytest.raises(ValueError, match='llama/config.json.*' + message):
    hf_import.config_from_hf(config, str(path))


def test_an_index_names_files_of_its_directory(tmp_path):
  """No pipe, which would block; nothing elsewhere; a table."""
  directory = copy_golden('smollm2', tmp_path)
  path = directory / 'model.safetensors.index.json'
  table = json.loads(path.read_text())
  for name in ('../model.safetensors', '/dev/zero', 7):
    table['weight_map']['model.norm.weight'] = name
    path.write_text(json.dumps(table))
    with pytest.raises(ValueError, match='index.json: weight_map names'):
      hf_import.import_weights(directory)
  table['weight_map']['model.norm.weight'] = 'pipe.safetensors'
  path.write_text(json.dumps(table))
  os.mkfifo(directory / 'pipe.safetensors')
  with pytest.raises(ValueError, match='pipe.safetensors is not a regular'):
    hf_import.import_weights(directory)
  path.write_text('{"weight_map": 3}')
  with pytest.raises(ValueError, match='weight_map names None'):
    hf_import.import_weights(directory)
  path.unlink()
  os.mkfifo(path)
  with pytest.raises(ValueError, match='index.json is not a regular file'):
    hf_import.import_weights(directory)


def test_frequencies_of_older_files_are_not_read(tmp_path, assert_same_tree):
  path = (directory := copy_golden('llama', tmp_path)) / 'model.safetensors'
  tensors = safetensors.numpy.load_file(path)
  _, params = hf_import.import_weights(directory)
  tensors['model.layers.0.self_attn.rotary_emb.inv_freq'] = np.ones(2, 'f4')
  safetensors.numpy.save_file(tensors, path)
  assert_same_tree(hf_import.import_weights(directory)[1], params)


def test_ids_beyond_the_vocabulary_are_refused_before_weights(
  tmp_path, random_params
):
  """Those that end a response, too."""
  out = tmp_path / 'out'
  cfg = CONFIGS['qwen3']
  hf_export.export_hf(str(out), cfg, random_params(cfg), ByteTokenizer())
  config = json.loads((out / 'config.json').read_text())
  (out / 'config.json').write_text(json.dumps({**config, 'vocab_size': 100}))
  (out / 'model.safetensors').unlink()
  with pytest.raises(ValueError, match='258 ids, the model has 100'):
    hf_import.import_hf(str(out))
