"""Weights that tests of files write and compare."""

import jax
import numpy as np
import pytest

from rl_jax.models import spec
from rl_jax.models.transformer import specs


@pytest.fixture(scope='session')
def random_params():
  """(configuration, seed) -> every leaf random: no two can be exchanged."""

  def random_params(cfg, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(
      lambda x: jax.device_put(rng.normal(size=x.shape).astype(x.dtype)),
      spec.abstract(specs(cfg)),
    )

  return random_params


@pytest.fixture(scope='session')
def assert_same_tree():
  """E0: the same tree, types and bits."""

  def assert_same_tree(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    for a, b in pairs:
      assert a.dtype == b.dtype
      np.testing.assert_array_equal(np.asarray(a), np.asarray(b))

  return assert_same_tree
