"""Parameter descriptions and the sizes of public models."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import spec

# Parameters of the published checkpoints, embeddings counted once if tied.
PUBLISHED = {
  'SmolLM2-135M': 134_515_008,
  'SmolLM2-360M': 361_821_120,
  'SmolLM2-1.7B': 1_711_376_384,
  'Qwen2.5-0.5B': 494_032_768,
  'Qwen2.5-1.5B': 1_543_714_304,
  'Qwen2.5-3B': 3_085_938_688,
  'Qwen2.5-7B': 7_615_616_512,
  'Qwen2.5-14B': 14_770_033_664,
  'Qwen2.5-32B': 32_763_876_352,
  'Qwen2.5-Math-1.5B': 1_543_714_304,
  'Qwen2.5-Math-7B': 7_615_616_512,
  'DeepSeek-R1-Distill-Qwen-1.5B': 1_777_088_000,
  'DeepSeek-R1-Distill-Qwen-7B': 7_615_616_512,
  'Qwen3-0.6B': 596_049_920,
  'Qwen3-1.7B': 1_720_574_976,
  'Qwen3-4B': 4_022_468_096,
  'Qwen3-8B': 8_190_735_360,
  'Qwen3-30B-A3B': 30_532_122_624,
  'OLMoE-1B-7B': 6_919_161_856,
  'TinyLlama-1.1B': 1_100_048_384,
  'Llama-3-8B': 8_030_261_248,
  'Llama-3.1-8B': 8_030_261_248,
  'Llama-3.2-1B': 1_235_814_400,
}


@pytest.mark.parametrize('name', PUBLISHED)
def test_presets_have_the_published_number_of_parameters(name):
  """Any wrong width, depth, head, bias or tie changes the count."""
  specs = models.specs(models.presets.PRESETS[name])
  assert spec.count(specs) == PUBLISHED[name]


def test_init_of_a_parameter_depends_on_its_path_alone():
  """E0: an added value head leaves the model's values as they were."""
  cfg = dataclasses.replace(models.presets.tiny(), num_layers=1)
  key = jax.random.key(3)
  plain = spec.init(models.specs(cfg), key)
  more = spec.init(
    models.specs(dataclasses.replace(cfg, value_head=True, lora_rank=2)), key
  )
  jax.tree.map(np.testing.assert_array_equal, plain['model'], more['model'])
  embed, gate = plain['model']['embed'], plain['model']['layers']['w_gate']
  assert float(embed.std()) == pytest.approx(0.02, rel=0.05)
  assert float(gate.std()) == pytest.approx(128**-0.5, rel=0.05)


def test_abstract_has_the_shapes_and_dtypes_of_init():
  """The description and what is drawn from it agree leaf by leaf."""
  cfg = dataclasses.replace(
    models.presets.tiny(), param_dtype='bfloat16', value_head=True
  )
  specs = models.specs(cfg)
  drawn = jax.eval_shape(lambda: spec.init(specs, jax.random.key(0)))
  assert drawn == spec.abstract(specs)
  assert drawn['model']['embed'].dtype == jnp.bfloat16


def test_a_tree_without_random_leaves_is_constant():
  """A value head can be added to a loaded model."""
  head = spec.init(models.value_specs(4), jax.random.key(0))
  np.testing.assert_array_equal(head['w'], np.zeros(4, np.float32))


def test_axes_must_match_the_shape():
  """A forgotten axis name is an error, not a silent replication."""
  with pytest.raises(ValueError, match='differ in length'):
    spec.ParamSpec((2, 3), 'float32', (None,), spec.ZEROS)
