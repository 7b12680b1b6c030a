"""Value heads of one and two layers."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import heads, transformer
from rl_jax.models.files import hf_export
from rl_jax.models.source import ModelSource

HIDDEN = jnp.array([[1.0, 2.0], [-1.0, 0.5]])
HEAD = {
  'inner_w': jnp.array([[1.0, -1.0], [0.5, 1.0]]),
  'inner_b': jnp.array([0.5, -1.0]),
  'w': jnp.array([2.0, 3.0]),
  'b': jnp.array(0.25),
}


def test_two_layers_by_hand():
  """max(0, [1 - 2 + .5, .5 + 2 - 1]) = [0, 1.5] and max(0, [-1, -1]) = 0."""
  found = heads.values({'value_head': HEAD}, HIDDEN)
  np.testing.assert_allclose(found, [3 * 1.5 + 0.25, 0.25])
  every = heads.all_values({'value_head': HEAD}, HIDDEN)
  np.testing.assert_array_equal(every[:, 0], found)


def test_an_inner_layer_that_copies_is_none():
  """E0, where states are not negative."""
  plain = {'w': HEAD['w'], 'b': HEAD['b']}
  same = plain | {'inner_w': jnp.eye(2), 'inner_b': jnp.zeros(2)}
  hidden = jnp.abs(HIDDEN)
  np.testing.assert_array_equal(
    heads.values({'value_head': same}, hidden),
    heads.values({'value_head': plain}, hidden),
  )


def test_shapes_follow_the_configuration(tiny):
  """Both start at 0, whatever the inner layer is."""
  cfg = dataclasses.replace(tiny.CFG, value_head=True, value_layers=2)
  specs = transformer.specs(cfg)['value_head']
  assert specs['inner_w'].shape == (cfg.width, cfg.width)
  assert specs['w'].init == 'zeros' and specs['inner_w'].init != 'zeros'
  one = transformer.specs(dataclasses.replace(cfg, value_layers=1))
  assert set(one['value_head']) == {'w', 'b'}


def test_what_does_not_fit_is_refused(tiny, tmp_path):
  cfg = dataclasses.replace(tiny.CFG, value_head=True, value_layers=2)
  with pytest.raises(ValueError, match='set model.value_layers=2, not 1'):
    ModelSource(path='runs/prm', value_head=True).applied_to(cfg, cfg)
  with pytest.raises(ValueError, match='of 2 layers is not a sequence cla'):
    hf_export.export_hf(
      str(tmp_path), cfg, {'value_head': HEAD}, None, classifier=True
    )
