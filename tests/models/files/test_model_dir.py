"""Model directories: exact, atomic, sharded on loading; one loader for all."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import jax
from jax.sharding import NamedSharding
import numpy as np
import pytest

from rl_jax import serialization
from rl_jax.models.files import directories, hf_export, model_dir
from rl_jax.models.params import init_params
from rl_jax.models.rope import RopeScaling
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.models.transformer import ModelConfig, specs
from rl_jax.runtime import mesh as mesh_lib

ROOT = pathlib.Path(__file__).parents[3]
CONFIG = ModelConfig(
  vocab_size=260,
  num_layers=2,
  width=8,
  num_heads=4,
  num_kv_heads=2,
  head_size=4,
  mlp_size=16,
  rope_scaling=RopeScaling(
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_positions=32,
  ),
)
TOKENIZER = CharTokenizer('abc')


@pytest.mark.parametrize(
  'change',
  [{}, {'lora_rank': 2, 'value_head': True}, {'param_dtype': 'bfloat16'}],
)
def test_load_of_save_is_the_identity(
  change, tmp_path, random_params, assert_same_tree
):
  """E0: configuration, parameters with adapters and head, tokenizer."""
  cfg = dataclasses.replace(CONFIG, **change)
  params = random_params(cfg)
  path = str(tmp_path / 'model')
  model_dir.save_model(path, cfg, params, TOKENIZER)
  loaded_cfg, loaded, tokenizer = model_dir.load_model(path)
  assert loaded_cfg == cfg
  assert tokenizer == TOKENIZER
  assert_same_tree(loaded, params)
  assert os.listdir(tmp_path) == ['model']


def test_overrides(tmp_path, random_params):
  path = str(tmp_path / 'model')
  model_dir.save_model(path, CONFIG, random_params(CONFIG), TOKENIZER)
  cfg, params, _ = model_dir.load_any(path, param_dtype='bfloat16', remat=True)
  assert cfg.remat
  assert params['model']['embed'].dtype == 'bfloat16'


def test_loaded_parameters_can_be_donated(tmp_path, random_params):
  """Buffers that alias the memory of the file cannot be donated."""
  path = str(tmp_path / 'model')
  model_dir.save_model(path, CONFIG, random_params(CONFIG), TOKENIZER)
  _, params, _ = model_dir.load_model(path)
  jax.jit(lambda p: jax.tree.map(lambda x: x + 1, p), donate_argnums=0)(params)
  assert all(x.is_deleted() for x in jax.tree.leaves(params))


def test_replaces_a_model_and_nothing_else(
  tmp_path, random_params, assert_same_tree
):
  path = str(tmp_path / 'model')
  first, second = random_params(CONFIG, 1), random_params(CONFIG, 2)
  model_dir.save_model(path, CONFIG, first, TOKENIZER)
  model_dir.save_model(path, CONFIG, second, TOKENIZER)
  assert_same_tree(model_dir.load_model(path)[1], second)
  other = tmp_path / 'thesis'
  other.mkdir()
  for name in ('chapter.txt', 'config.json', 'model.json'):
    (other / name).write_text('{"years": "of work"}')
  message = r'thesis exists and .* \(chapter.txt, config.json, model.json'
  with pytest.raises(ValueError, match=message):
    model_dir.save_model(str(other), CONFIG, first, TOKENIZER)
  with pytest.raises(ValueError, match=message):
    hf_export.export_hf(str(other), CONFIG, first, TOKENIZER)
  assert len(list(other.iterdir())) == 3
  with pytest.raises(ValueError, match='chapter.txt is a file'):
    model_dir.save_model(str(other / 'chapter.txt'), CONFIG, first, TOKENIZER)


def test_what_users_add_to_a_model_directory_is_kept(tmp_path, random_params):
  """History, README and data; another kind of model replaces ours."""
  path = tmp_path / 'model'
  model_dir.save_model(str(path), CONFIG, random_params(CONFIG), TOKENIZER)
  (path / '.git' / 'refs').mkdir(parents=True)
  (path / '.git' / 'refs' / 'main').write_text('0123')
  (path / 'README.md').write_text('a card')
  (path / 'data.jsonl').symlink_to('../elsewhere')
  hf_export.export_hf(str(path), CONFIG, random_params(CONFIG), TOKENIZER)
  assert {x.name for x in path.iterdir()} == {
    *('.git', 'README.md', 'data.jsonl', directories.MARKER),
    *('config.json', 'model.safetensors', 'tokenizer_config.json'),
  }
  assert (path / '.git' / 'refs' / 'main').read_text() == '0123'
  assert (path / 'README.md').read_text() == 'a card'
  assert os.readlink(path / 'data.jsonl') == '../elsewhere'
  assert os.listdir(tmp_path) == ['model']


def test_a_file_of_the_user_is_never_overwritten(
  tmp_path, random_params, assert_same_tree
):
  """Not even in a directory that rl_jax wrote."""
  path = tmp_path / 'model'
  params = random_params(CONFIG)
  model_dir.save_model(str(path), CONFIG, params, TOKENIZER)
  (path / 'config.json').write_text('{"mine": 1}')
  with pytest.raises(ValueError, match='model: config.json would be replaced'):
    hf_export.export_hf(str(path), CONFIG, params, TOKENIZER)
  assert (path / 'config.json').read_text() == '{"mine": 1}'
  assert_same_tree(model_dir.load_model(str(path))[1], params)
  (path / directories.MARKER).write_text('{"files": 3}')
  with pytest.raises(ValueError, match='damaged: it has no list of files'):
    model_dir.save_model(str(path), CONFIG, params, TOKENIZER)


def test_failed_save_leaves_the_old_model(
  tmp_path, monkeypatch, random_params, assert_same_tree
):
  path = str(tmp_path / 'model')
  params = random_params(CONFIG)
  model_dir.save_model(path, CONFIG, params, TOKENIZER)

  def fail(*_):
    raise OSError('disk full')

  monkeypatch.setattr(model_dir, 'save_tokenizer', fail)
  with pytest.raises(OSError, match='disk full'):
    model_dir.save_model(path, CONFIG, random_params(CONFIG, 1), TOKENIZER)
  assert os.listdir(tmp_path) == ['model']
  assert_same_tree(model_dir.load_model(path)[1], params)


def test_what_does_not_fit_is_named(tmp_path, random_params):
  path = tmp_path / 'model'
  params = random_params(CONFIG)
  wide = dataclasses.replace(CONFIG, mlp_size=17)
  with pytest.raises(ValueError, match=r'w_up has shape \(2, 8, 16\), not'):
    model_dir.save_model(str(path), wide, params, TOKENIZER)
  with pytest.raises(ValueError, match='lora.*is missing'):
    with_lora = dataclasses.replace(CONFIG, lora_rank=1)
    model_dir.save_model(str(path), with_lora, params, TOKENIZER)
  model_dir.save_model(str(path), CONFIG, params, TOKENIZER)
  with pytest.raises(ValueError, match='value_head/w is missing'):
    model_dir.load_model(str(path), value_head=True)
  weights = path / 'weights.safetensors'
  weights.write_bytes(weights.read_bytes()[:-5])
  with pytest.raises(ValueError, match='weights.safetensors is damaged'):
    model_dir.load_model(str(path))
  (path / 'model.json').write_text('{"class": 3')
  with pytest.raises(ValueError, match='model.json is damaged'):
    model_dir.load_model(str(path))
  (path / 'model.json').write_text('{"class": "models.MeshConfig"}')
  with pytest.raises(ValueError, match='it holds no ModelConfig'):
    model_dir.load_model(str(path))
  cfg = dataclasses.replace(CONFIG, num_layers=1000)
  text = serialization.to_json(cfg).replace('1000', '1000000000')
  (path / 'model.json').write_text(text)
  with pytest.raises(ValueError, match='model.json is damaged: .*num_layers'):
    model_dir.load_model(str(path))
  with pytest.raises(ValueError, match='nowhere is not a model: neither'):
    model_dir.load_any(str(tmp_path / 'nowhere'))
  (tmp_path / 'peft').mkdir()
  (tmp_path / 'peft/adapter_config.json').write_text('{}')
  with pytest.raises(ValueError, match='adapters of PEFT .*--adapters=/'):
    model_dir.load_any(str(tmp_path / 'peft'))


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_weights_that_are_not_finite_are_refused(
  dtype, tmp_path, random_params
):
  """A run would skip every update, an evaluation would sample anything."""
  path = str(tmp_path / 'model')
  cfg = dataclasses.replace(CONFIG, param_dtype=dtype)
  params = random_params(cfg)
  wq = params['model']['layers']['wq']
  params['model']['layers']['wq'] = wq.at[1, 2, 3, 0].set(np.nan)
  model_dir.save_model(path, cfg, params, TOKENIZER)
  with pytest.raises(ValueError, match='safetensors: model/layers/wq has numb'):
    model_dir.load_model(path)


def golden_with_tokenizer(tmp_path):
  """A Hugging Face directory with a tokenizer of ours."""
  path = tmp_path / 'hf'
  shutil.copytree(ROOT / 'tests' / 'golden' / 'qwen3', path)
  directories.write_json(
    str(path),
    'tokenizer_config.json',
    {'tokenizer_class': 'rl_jax.CharTokenizer', 'alphabet': 'abc'},
  )
  return str(path)


def test_mesh_of_one_device(tmp_path, assert_same_tree):
  """Every leaf carries the sharding of its own spec; E0 values."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  source = golden_with_tokenizer(tmp_path)
  cfg, params, _ = model_dir.load_any(source, mesh)
  assert_same_tree(params, model_dir.load_any(source)[1])
  expected = mesh_lib.param_shardings(specs(cfg), mesh)
  for leaf, layout in zip(
    jax.tree.leaves(params), jax.tree.leaves(expected), strict=True
  ):
    assert isinstance(leaf.sharding, NamedSharding)
    assert leaf.sharding == layout


@pytest.mark.devices
def test_mesh_of_eight_devices(tmp_path, assert_same_tree):
  """E0: each shard is read by itself; equal to the whole, from both formats."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))
  source = golden_with_tokenizer(tmp_path)
  cfg, whole, tokenizer = model_dir.load_any(source)
  saved = str(tmp_path / 'model')
  model_dir.save_model(saved, cfg, whole, tokenizer)
  for path in (source, saved):
    _, params, _ = model_dir.load_any(path, mesh)
    assert_same_tree(params, whole)
    wq = params['model']['layers']['wq']
    assert wq.addressable_shards[0].data.size == wq.size // 4
  sharded = str(tmp_path / 'sharded')
  model_dir.save_model(sharded, cfg, params, tokenizer)
  assert_same_tree(model_dir.load_model(sharded)[1], whole)


def run(module, *flags):
  """Runs a binary of the project as a user does."""
  return subprocess.run(
    [sys.executable, '-m', f'experiments.{module}', *flags],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


def test_untrained_weights_of_the_same_sizes(tmp_path, assert_same_tree):
  """The weights are those of a new run with the seed, not the source's."""
  source, out = golden_with_tokenizer(tmp_path), str(tmp_path / 'out')
  result = run(
    'import_weights', f'--source={source}', f'--out={out}', '--untrained=3'
  )
  assert result.returncode == 0, result.stderr
  cfg, params, tokenizer = model_dir.load_any(source)
  found_cfg, found, found_tokenizer = model_dir.load_any(out)
  assert (found_cfg, found_tokenizer) == (cfg, tokenizer)
  assert_same_tree(found, init_params(cfg, jax.random.key(3)))
  embed = params['model']['embed']
  assert not np.array_equal(found['model']['embed'], embed)


def test_binaries_round_trip(tmp_path, assert_same_tree):
  """E0 through import_weights, export_weights and import again."""
  source = golden_with_tokenizer(tmp_path)
  ours, back = str(tmp_path / 'ours'), str(tmp_path / 'back')
  result = run('import_weights', f'--source={source}', f'--out={ours}')
  assert result.returncode == 0, result.stderr
  result = run('export_weights', f'--checkpoint={ours}', f'--out={back}')
  assert result.returncode == 0, result.stderr
  cfg, params, _ = model_dir.load_any(source)
  for path in (ours, back):
    loaded_cfg, loaded, tokenizer = model_dir.load_any(path)
    assert (loaded_cfg, tokenizer) == (cfg, TOKENIZER)
    assert_same_tree(loaded, params)


KILLED = """
import os, signal, sys
from rl_jax.models.files import directories
rename, renames = os.rename, []

def counted(*arguments):
  rename(*arguments)
  renames.append(1)
  if len(renames) == int(sys.argv[2]):
    stop()

def stop():
  print('there', flush=True)
  sys.stdin.read() if sys.argv[3] == 'wait' else os.kill(os.getpid(), 9)

os.rename = counted
with directories.replace_directory(sys.argv[1]) as path:
  with open(f'{path}/file', 'w') as file:
    file.write('new')
  if sys.argv[2] == '0':
    stop()
"""


def write_old(model):
  with directories.replace_directory(str(model)) as path:
    (pathlib.Path(path) / 'file').write_text('old')


@pytest.mark.parametrize('renames, left', [(0, 'old'), (1, 'old'), (2, 'new')])
def test_what_a_killed_export_has_left_is_removed(tmp_path, renames, left):
  """While it writes, between its renames, and before it deletes the former."""
  model = tmp_path / 'model'
  write_old(model)
  (tmp_path / '.model.partial').write_text('of another program')
  code = [sys.executable, '-c', KILLED, str(model), str(renames), 'kill']
  assert subprocess.run(code, check=False).returncode == -9
  assert len(list(tmp_path.iterdir())) == 3
  with directories.replace_directory(str(model)) as path:
    assert (model / 'file').read_text() == left
    (pathlib.Path(path) / 'file').write_text('newest')
  assert (model / 'file').read_text() == 'newest'
  names = sorted(path.name for path in tmp_path.iterdir())
  assert names == ['.model.partial', 'model']


def test_what_another_process_writes_is_left_alone(tmp_path):
  """Two exports to one directory: the later one stays."""
  model = tmp_path / 'model'
  write_old(model)
  code = [sys.executable, '-c', KILLED, str(model), '0', 'wait']
  with subprocess.Popen(
    code, stdin=subprocess.PIPE, stdout=subprocess.PIPE
  ) as process:
    assert process.stdout.readline() == b'there\n'
    write_old(model)
    (writing,) = tmp_path.glob('.model.partial-*')
    assert (writing / 'file').read_text() == 'new'
    process.communicate(b'')
    assert process.returncode == 0
  assert (model / 'file').read_text() == 'new'
  assert [path.name for path in tmp_path.iterdir()] == ['model']
