"""Weights reach their devices in blocks: exact, and little host memory."""

import math
import tracemalloc

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np
import pytest

from rl_jax.models import presets, spec
from rl_jax.models.files import hf_export, model_dir, placement
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.models.transformer import specs
from rl_jax.runtime import mesh as mesh_lib

# The embedding (1 MiB) is the largest tensor of the file. All layers of an MLP
# weight together, one leaf, are twice as large, the file 8 times.
CONFIG = presets.small(vocab_size=2048, num_layers=16, width=128, num_heads=4)
MIB = 1 << 20


def recorded(array, axes, reads):
  """A reader of an array that counts what it reads."""

  def read(index):
    reads.append(array[index].size)
    return array[index]

  return placement.LeafReader(read, axes)


@pytest.mark.parametrize('axes', [(0, 2), (1,), (0, 1, 2, 3)])
def test_blocks_make_the_leaf(monkeypatch, axes):
  """E0, without a mesh; 7 layers do not divide, so blocks overlap."""
  monkeypatch.setattr(placement, 'BLOCK_ELEMENTS', 200)
  array = np.random.default_rng(0).normal(size=(7, 6, 5, 4))
  reads = []
  leaf = placement.place(recorded(array, axes, reads), array.shape, 'float32')
  np.testing.assert_array_equal(leaf, array.astype('float32'))
  # Only along axis 1 a row has 140.
  assert len(reads) > 1 and max(reads) <= 200
  jax.jit(lambda x: x + 1, donate_argnums=0)(leaf)
  assert leaf.is_deleted()


@pytest.mark.devices
@pytest.mark.parametrize('axes', [(0, 2), (0, 1, 2, 3)])
def test_blocks_of_every_shard(monkeypatch, axes):
  """E0 on a mesh; where shards share a part of the file it is read once."""
  monkeypatch.setattr(placement, 'BLOCK_ELEMENTS', 150)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))
  layout = NamedSharding(mesh, PartitionSpec(None, 'fsdp', 'tensor', None))
  array = np.random.default_rng(0).normal(size=(7, 6, 10, 4)).astype('float32')
  reads = []
  reader = recorded(array, axes, reads)
  leaf = placement.place(reader, array.shape, 'float32', layout)
  # Of a copy: a view of its CPU buffer would keep it from being donated.
  np.testing.assert_array_equal(jnp.copy(leaf), array)
  assert leaf.sharding == layout
  assert len(reads) > 4 and max(reads) <= 150
  # Blocks that overlap are read again: a layer, or a row, at most.
  assert sum(reads) <= array.size * 1.5
  jax.jit(lambda x: x + 1, donate_argnums=0)(leaf)
  assert leaf.is_deleted()


@pytest.mark.parametrize('kind', ['hugging face', 'ours'])
def test_host_memory_of_an_import(monkeypatch, tmp_path, kind):
  """E0, and at most 1.5 times the largest tensor (tracemalloc sees numpy).

  Ours keeps the layers of a weight in one tensor.
  """
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda x: jax.device_put(rng.normal(size=x.shape).astype(x.dtype)),
    spec.abstract(specs(CONFIG)),
  )
  path, tokenizer = str(tmp_path / 'model'), CharTokenizer('abc')
  write = model_dir.save_model if kind == 'ours' else hf_export.export_hf
  write(path, CONFIG, params, tokenizer)
  total = sum(4 * x.size for x in jax.tree.leaves(params))
  largest = 4 * math.prod(params['model']['embed'].shape)
  assert total > 8 * largest
  monkeypatch.setattr(placement, 'BLOCK_ELEMENTS', 1 << 14)
  # Compiles, which takes memory as well.
  _, loaded, _ = model_dir.load_any(path)
  jax.tree.map(np.testing.assert_array_equal, loaded, params)
  tracemalloc.start()
  try:
    model_dir.load_any(path)
    peak = tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()
  assert peak < 1.5 * largest + 0.25 * MIB, peak / largest
