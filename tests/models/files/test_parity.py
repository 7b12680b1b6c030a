"""Logits agree with `transformers` for every family (float32, 1e-4)."""

import dataclasses
import importlib.util
import pathlib

import jax
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import spec
from rl_jax.models.files import gguf_import, hf_export, hf_import
from rl_jax.models.tokenizer import HFTokenizer

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden'
WINDOWED = ('mistral', 'gemma2', 'gemma3')
EXPERTS = ('qwen3_moe', 'olmoe')
FAMILIES = ('llama', 'smollm2', 'qwen2', 'qwen3', *WINDOWED, *EXPERTS)
LIVE = 'the optional package transformers (with torch) checks this live'


def our_logits(params, cfg, ids, prompt_tokens, padding):
  """Logits that predict ids[:, prompt_tokens:], [B, S - prompt_tokens, V]."""
  prompt = np.pad(ids[:, :prompt_tokens], ((0, 0), (padding, 0)))
  mask = np.ones(prompt.shape, np.float32)
  mask[:, :padding] = 0
  response = ids[:, prompt_tokens:]
  hidden = models.forward(
    params, cfg, prompt, mask, response, np.ones(response.shape, np.float32)
  )
  return models.logits(params, cfg, hidden)


@pytest.mark.parametrize(
  'family, prompt_tokens, padding',
  [
    pytest.param(family, *sizes, marks=pytest.mark.slow)
    if family in WINDOWED + EXPERTS and sizes == (1, 0)
    else (family, *sizes)
    for family in FAMILIES
    for sizes in ((1, 0), (7, 3))
  ],
)
def test_golden_logits(family, prompt_tokens, padding):
  cfg, params = hf_import.import_weights(GOLDEN / family)
  golden = np.load(GOLDEN / family / 'golden.npz')
  logits = our_logits(params, cfg, golden['ids'], prompt_tokens, padding)
  np.testing.assert_allclose(
    logits, golden['logits'][:, prompt_tokens - 1 : -1], rtol=0, atol=1e-4
  )


@pytest.mark.parametrize(
  'family, change',
  [
    ('llama', {'rope_scaling': None}),
    ('llama', {'rope_theta': 10000.0}),
    ('smollm2', {'norm_eps': 1e-2}),
    ('qwen2', {'qkv_bias': False}),
    ('qwen3', {'qk_norm': False}),
    *(
      pytest.param(*case, marks=pytest.mark.slow)
      for case in (
        ('mistral', {'window': 6}),
        ('mistral', {'rope_scaling': None}),
        ('gemma2', {'windowed': (0, 1)}),
        ('gemma2', {'attention_cap': None}),
        ('gemma2', {'logit_cap': None}),
        ('gemma2', {'query_pre_attn_scalar': None}),
        ('gemma2', {'norm_offset': False}),
        ('gemma2', {'scaled_embeddings': False}),
        ('gemma2', {'activation': 'silu'}),
        ('gemma3', {'window_rope_theta': None}),
        ('gemma3', {'rope_scaling': None}),
        ('qwen3_moe', {'normalized_gates': False}),
        ('qwen3_moe', {'experts_per_token': 3}),
        ('olmoe', {'normalized_gates': True}),
        ('olmoe', {'experts_per_token': 2}),
      )
    ),
  ],
)
def test_goldens_notice_every_switch(family, change):
  """The tolerance above is far below what a wrong configuration changes."""
  cfg, params = hf_import.import_weights(GOLDEN / family)
  cfg = dataclasses.replace(cfg, **change)
  golden = np.load(GOLDEN / family / 'golden.npz')
  logits = our_logits(params, cfg, golden['ids'], 1, 0)
  assert np.abs(logits - golden['logits'][:, :-1]).max() > 1e-3


def make_parity():
  """The script beside the golden files, as a module (it imports torch)."""
  pytest.importorskip('transformers', reason=LIVE)
  pytest.importorskip('torch', reason=LIVE)
  path = GOLDEN / 'make_parity.py'
  source = importlib.util.spec_from_file_location('make_parity', path)
  module = importlib.util.module_from_spec(source)
  source.loader.exec_module(module)
  return module


@pytest.mark.filterwarnings('ignore')  # of torch and transformers
@pytest.mark.parametrize('family', FAMILIES)
def test_live_logits(family, tmp_path):
  """Fresh weights, written by the installed transformers."""
  parity = make_parity()
  model = parity.make_model(family, seed=1)
  model.save_pretrained(tmp_path)
  ids = np.random.default_rng(1).integers(3, 48, size=(3, 40))
  expected = parity.logits_of(tmp_path, ids)
  cfg, params = hf_import.import_weights(tmp_path)
  np.testing.assert_allclose(
    our_logits(params, cfg, ids, 5, 2), expected[:, 4:-1], rtol=0, atol=1e-4
  )


def tiny_tokenizer():
  """Byte-level BPE with two merges and two special tokens."""
  letters = list('abcdefghijklmnopqrstuvwxyzĠ0123456789')
  tokens = ['<|im_start|>', '<|im_end|>', *letters, 'Ġt', 'Ġth']
  backend = gguf_import.byte_level_bpe(
    'smollm', tokens, ['Ġ t', 'Ġt h'], [3, 3] + [1] * (len(tokens) - 2)
  )
  template = (
    '{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}'
    '<|im_end|>{% endfor %}{% if add_generation_prompt %}'
    '<|im_start|>assistant {% endif %}'
  )
  return HFTokenizer(backend, eos_ids=(1,), pad_id=0, chat_template=template)


@pytest.mark.filterwarnings('ignore')  # of torch and transformers
@pytest.mark.parametrize('family', FAMILIES)
def test_live_export(family, tmp_path):
  """transformers loads an export, adapters merged, and agrees with us."""
  transformers = pytest.importorskip('transformers', reason=LIVE)
  parity = make_parity()
  cfg, _ = hf_import.import_weights(GOLDEN / family)
  cfg = dataclasses.replace(cfg, lora_rank=2)
  params = spec.init(models.specs(cfg), jax.random.key(0))
  # The adapters' b starts at zero: every leaf gets a value that has an effect.
  params = jax.tree.map(lambda x: x + 0.1, params)
  tokenizer = tiny_tokenizer()
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, tokenizer)
  ids = np.random.default_rng(2).integers(3, 41, size=(2, 20))
  theirs = transformers.AutoModelForCausalLM.from_pretrained(out)
  np.testing.assert_allclose(
    our_logits(params, cfg, ids, 1, 0),
    parity.logits_of(out, ids)[:, :-1],
    rtol=1e-4,
    atol=1e-4,
  )
  loaded = transformers.AutoTokenizer.from_pretrained(out)
  text = 'the 123 cats<|im_end|>'
  expected = tokenizer.encode(text, control=True)
  assert loaded.encode(text, add_special_tokens=False) == expected
  messages = [{'role': 'user', 'content': 'hi'}]
  assert loaded.apply_chat_template(
    messages, tokenize=False, add_generation_prompt=True
  ) == tokenizer.chat(messages)
  assert theirs.generation_config.eos_token_id == [1]
