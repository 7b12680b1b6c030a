"""Adapters in the files of PEFT."""

import dataclasses
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from rl_jax import models
from rl_jax.models.files import hf_import, peft

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden' / 'qwen2'
LIVE = 'the optional package peft (with torch) checks this live'
IDS = np.random.default_rng(3).integers(3, 48, size=(2, 12))


def adapted(targets, rank=2):
  """(base, params, the model with random adapters, their tree)."""
  base, params = hf_import.import_weights(GOLDEN)
  cfg = dataclasses.replace(
    base, lora_rank=rank, lora_alpha=5.0, lora_targets=targets
  )
  rng = np.random.default_rng(0)
  tree = jax.tree.map(
    lambda x: jnp.asarray(rng.normal(0, 0.3, x.shape), jnp.float32),
    models.spec.abstract(models.specs(cfg)['lora']),
  )
  return base, params, cfg, {'lora': tree}


@pytest.mark.parametrize('targets', [('wq', 'wo'), models.lora.TARGETS])
def test_adapters_come_back(tmp_path, targets):
  """E0: rank, alpha, targets and every number."""
  base, params, cfg, tree = adapted(targets)
  out = str(tmp_path / 'out')
  peft.export_adapters(out, cfg, {**params, **tree}, base='x')
  found, restored = peft.import_adapters(out, base)
  assert found == cfg
  jax.tree.map(np.testing.assert_array_equal, restored, tree)


def test_adapters_of_experts_are_refused(tmp_path):
  """Written and read; those of attention are as of any model."""
  base, _, cfg, tree = adapted(('w_up', 'wq'))
  sizes = dict(num_experts=2, experts_per_token=1)
  with pytest.raises(ValueError, match="'w_up'. of 2 experts"):
    peft.export_adapters('x', dataclasses.replace(cfg, **sizes), tree, 'x')
  out = str(tmp_path / 'out')
  peft.export_adapters(out, cfg, tree, base='x')
  with pytest.raises(ValueError, match="'w_up'. of 2 experts"):
    peft.import_adapters(out, dataclasses.replace(base, **sizes))


def test_the_matrices_are_those_of_peft(tmp_path):
  """E1: W + alpha / r * B A in the axes of the files, for wo and w_down."""
  _, params, cfg, tree = adapted(models.lora.TARGETS)
  out = tmp_path / 'out'
  peft.export_adapters(str(out), cfg, {**params, **tree}, base='x')
  tensors = safetensors.numpy.load_file(out / peft.WEIGHTS)
  merged = models.merge({**params, **tree}, cfg)['model']['layers']
  whole = safetensors.numpy.load_file(GOLDEN / 'model.safetensors')
  for target, module in (('wo', 'self_attn.o_proj'), ('w_up', 'mlp.up_proj')):
    name = f'model.layers.1.{module}'
    a, b = (tensors[f'base_model.model.{name}.lora_{x}.weight'] for x in 'AB')
    expected = whole[f'{name}.weight'] + 5.0 / 2 * b @ a
    ours = np.asarray(merged[target][1]).reshape(expected.T.shape)
    np.testing.assert_allclose(ours.T, expected, rtol=1e-5, atol=1e-6)


def test_rank_stabilised_adapters_have_another_scale(tmp_path):
  """alpha / sqrt(r) = (alpha sqrt(r)) / r."""
  base, params, cfg, tree = adapted(('wq',), rank=4)
  out = tmp_path / 'out'
  peft.export_adapters(str(out), cfg, {**params, **tree}, base='x')
  edit(out, use_rslora=True)
  assert peft.import_adapters(str(out), base)[0].lora_alpha == 10.0


def edit(out, **changes):
  path = out / peft.CONFIG
  path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'peft_type': 'LOHA'}, "peft_type = 'LOHA' is not implemented"),
    ({'use_dora': True}, 'use_dora = True'),
    ({'modules_to_save': ['lm_head']}, 'modules_to_save'),
    ({'rank_pattern': {'q_proj': 4}}, 'rank_pattern'),
    ({'r': '2'}, "r = '2' is not a positive int"),
    ({'r': 3}, r'has shape \(2, 16\), not \(3, 16\)'),
    ({'lora_alpha': None}, 'lora_alpha = None'),
    ({'use_rslora': 'no'}, "use_rslora = 'no' is neither true nor false"),
    ({'fan_in_fan_out': True}, 'fan_in_fan_out = True'),
    ({'bias': 'lora_only'}, "bias = 'lora_only'"),
    ({'lora_bias': True}, 'lora_bias = True'),
    ({'use_qalora': True}, 'use_qalora = True'),
    ({'alpha_pattern': {'q_proj': 4}}, 'alpha_pattern'),
    ({'layers_to_transform': [0]}, r'layers_to_transform = \[0\]'),
    ({'layer_replication': [[0, 1]]}, 'layer_replication'),
    ({'megatron_config': {'a': 1}}, 'megatron_config'),
    ({'target_parameters': ['x']}, 'target_parameters'),
    ({'trainable_token_indices': [3]}, 'trainable_token_indices'),
    ({'monteclora_config': {'num_samples': 4}}, 'monteclora_config'),
    ({'use_next_variant': True}, 'use_next_variant = True is not known here'),
    ({'init_lora_weights': 'next'}, "init_lora_weights = 'next' is none of Tr"),
    ({'init_lora_weights': 3}, 'init_lora_weights = 3 is none of True'),
  ],
)
def test_what_is_refused_is_named(tmp_path, changes, message):
  base, params, cfg, tree = adapted(('wq',))
  out = tmp_path / 'out'
  peft.export_adapters(str(out), cfg, {**params, **tree}, base='x')
  edit(out, **changes)
  with pytest.raises(ValueError, match=message):
    peft.import_adapters(str(out), base)


CONVERTED = 'path_initial_model_for_weight_conversion=INITIAL_ADAPTER'


@pytest.mark.parametrize(
  ('init', 'advice'),
  [
    ('pissa', CONVERTED),
    ('pissa_niter_16', CONVERTED),
    ('PiSSA', CONVERTED),
    ('olora', CONVERTED),
    ('OLoRA', CONVERTED),
    ('corda', CONVERTED),
    ('loftq', 'as released: merge it'),
    ('lora_ga', 'as released: merge it'),
  ],
)
def test_adapters_of_a_changed_base_are_refused(tmp_path, init, advice):
  """They were read as plain LoRA, which is another model."""
  base, params, cfg, tree = adapted(('wq',))
  out = tmp_path / 'out'
  peft.export_adapters(str(out), cfg, {**params, **tree}, base='x')
  edit(out, init_lora_weights=init, loftq_config={'loftq_bits': 4})
  message = f'init_lora_weights = {init!r} took a part of .*{advice}.*merge_and'
  with pytest.raises(ValueError, match=message):
    peft.import_adapters(str(out), base)


# As LoraConfig.to_dict writes them where nothing is set.
DEFAULTS = {
  'alpha_pattern': {},
  'auto_mapping': None,
  'corda_config': None,
  'ensure_weight_tying': False,
  'eva_config': None,
  'exclude_modules': None,
  'layers_pattern': None,
  'layers_to_transform': None,
  'loftq_config': {},
  'megatron_config': None,
  'megatron_core': 'megatron.core',
  'modules_to_save': None,
  'peft_version': '0.18.0',
  'qalora_group_size': 16,
  'rank_pattern': {},
  'revision': None,
  'target_parameters': None,
  'trainable_token_indices': None,
  'use_next_variant': False,
}


@pytest.mark.parametrize(
  'init', [True, False, None, 'gaussian', 'eva', 'orthogonal', 'mica']
)
def test_what_changes_no_function_is_read(tmp_path, init):
  """E0: initialisations of the adapter only, and fields at their defaults."""
  base, params, cfg, tree = adapted(('wq',))
  out = tmp_path / 'out'
  peft.export_adapters(str(out), cfg, {**params, **tree}, base='x')
  own = {'lora_dropout': 0.1, 'exclude_modules': ['lm_head']}
  edit(out, **{**DEFAULTS, **own, 'init_lora_weights': init})
  found, restored = peft.import_adapters(str(out), base)
  assert found == cfg
  jax.tree.map(np.testing.assert_array_equal, restored, tree)


def test_models_with_and_without_adapters(tmp_path):
  """Nothing to export, or nowhere to put them."""
  base, params, cfg, _ = adapted(('wq',))
  with pytest.raises(ValueError, match='lora_rank = 0'):
    peft.export_adapters(str(tmp_path / 'out'), base, params, base='x')
  with pytest.raises(ValueError, match='adapters already'):
    peft.import_adapters(str(tmp_path / 'out'), cfg)


@pytest.mark.filterwarnings('ignore')  # of torch, transformers and peft
def test_live(tmp_path):
  """PEFT reads ours and we read PEFT's: logits within 1e-4."""
  lib = pytest.importorskip('peft', reason=LIVE)
  transformers = pytest.importorskip('transformers', reason=LIVE)
  torch = pytest.importorskip('torch', reason=LIVE)
  base, params, cfg, tree = adapted(models.lora.TARGETS)
  out = str(tmp_path / 'out')
  peft.export_adapters(out, cfg, {**params, **tree}, base=str(GOLDEN))
  make = transformers.AutoModelForCausalLM.from_pretrained
  theirs = lib.PeftModel.from_pretrained(make(GOLDEN), out).eval()

  def logits(model):
    with torch.no_grad():
      return model(torch.tensor(IDS)).logits.numpy()[:, :-1]

  def ours(params, cfg):
    prompt, response = IDS[:, :1], IDS[:, 1:]

    def ones(x):
      return np.ones(x.shape, np.float32)

    hidden = models.forward(
      params, cfg, prompt, ones(prompt), response, ones(response)
    )
    return models.logits(params, cfg, hidden)

  def close(x, y):
    return np.testing.assert_allclose(x, y, rtol=0, atol=1e-4)

  close(ours({**params, **tree}, cfg), logits(theirs))
  close(ours({**params, **tree}, cfg), logits(theirs.merge_and_unload()))
  fresh = lib.LoraConfig(
    r=3, lora_alpha=7, use_rslora=True, target_modules=['k_proj', 'down_proj']
  )
  model = lib.get_peft_model(make(GOLDEN), fresh).eval()
  with torch.no_grad():
    for name, value in model.named_parameters():
      if 'lora' in name:
        value.copy_(0.3 * torch.randn_like(value))
  model.save_pretrained(tmp_path / 'theirs')
  cfg, tree = peft.import_adapters(str(tmp_path / 'theirs'), base)
  close(ours({**params, **tree}, cfg), logits(model))
