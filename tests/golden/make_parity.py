"""Makes the golden checkpoints: tiny random models and what they compute.

For each family a Hugging Face directory written by `transformers` itself
(config.json, safetensors) and golden.npz with input ids and float32 logits; in
classifiers/ the same of sequence classifiers with one label, and their scores.

  pip install torch==2.13.0 transformers numpy
  python tests/golden/make_parity.py [FAMILY]   (writes beside this file)

Made with torch 2.13.0 and transformers 5.23.0. Every tensor is random, norms
and biases too, so that a swapped or forgotten one changes the logits.
"""

import os
import sys

import numpy as np
import torch
import transformers

SIZES = dict(
  vocab_size=48,
  hidden_size=16,
  intermediate_size=24,
  num_hidden_layers=2,
  num_attention_heads=4,
  num_key_value_heads=2,
  max_position_embeddings=128,
  rms_norm_eps=1e-5,
  pad_token_id=0,
  bos_token_id=1,
  eos_token_id=2,
)

# Family -> (configuration class, fields, dtype of the file, size of a shard).
FAMILIES = {
  'llama': (
    'LlamaConfig',
    dict(
      tie_word_embeddings=False,
      head_dim=8,
      rope_parameters={
        'rope_type': 'llama3',
        'rope_theta': 1000.0,
        'factor': 8.0,
        'low_freq_factor': 1.0,
        'high_freq_factor': 4.0,
        'original_max_position_embeddings': 64,
      },
    ),
    torch.float32,
    '1GB',
  ),
  'smollm2': (
    'LlamaConfig',
    dict(
      tie_word_embeddings=True,
      rope_parameters={'rope_type': 'default', 'rope_theta': 100000.0},
    ),
    torch.bfloat16,
    '4KB',
  ),
  'qwen2': (
    'Qwen2Config',
    dict(
      tie_word_embeddings=False,
      rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0},
    ),
    torch.float32,
    '1GB',
  ),
  'qwen3': (
    'Qwen3Config',
    dict(
      tie_word_embeddings=True,
      head_dim=8,
      rope_parameters={'rope_type': 'default', 'rope_theta': 1000000.0},
    ),
    torch.float32,
    '1GB',
  ),
  'mistral': (
    'MistralConfig',
    dict(
      tie_word_embeddings=False,
      head_dim=8,
      sliding_window=5,
      rope_parameters={
        'rope_type': 'yarn',
        'rope_theta': 1000.0,
        'factor': 4.0,
        'original_max_position_embeddings': 32,
        'beta_fast': 4.0,
      },
    ),
    torch.float32,
    '1GB',
  ),
  'gemma2': (
    'Gemma2Config',
    dict(
      tie_word_embeddings=True,
      head_dim=8,
      sliding_window=5,
      query_pre_attn_scalar=5,
      attn_logit_softcapping=2.0,
      final_logit_softcapping=3.0,
    ),
    torch.float32,
    '1GB',
  ),
  'gemma3': (
    'Gemma3TextConfig',
    dict(
      tie_word_embeddings=True,
      head_dim=8,
      sliding_window=5,
      query_pre_attn_scalar=6,
      layer_types=['sliding_attention', 'full_attention'],
      rope_parameters={
        'sliding_attention': {'rope_type': 'default', 'rope_theta': 100.0},
        'full_attention': {
          'rope_type': 'linear',
          'rope_theta': 10000.0,
          'factor': 8.0,
        },
      },
    ),
    torch.float32,
    '1GB',
  ),
  'qwen3_moe': (
    'Qwen3MoeConfig',
    dict(
      tie_word_embeddings=False,
      head_dim=8,
      moe_intermediate_size=12,
      num_experts=6,
      num_experts_per_tok=2,
      norm_topk_prob=True,
      rope_parameters={'rope_type': 'default', 'rope_theta': 1000000.0},
    ),
    torch.float32,
    '1GB',
  ),
  'olmoe': (
    'OlmoeConfig',
    dict(
      tie_word_embeddings=False,
      num_experts=5,
      num_experts_per_tok=3,
      rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0},
    ),
    torch.float32,
    '1GB',
  ),
}


CLASSIFIERS = ('llama', 'qwen2', 'qwen3', 'mistral', 'gemma2', 'gemma3')
EAGER = dict(dtype=torch.float32, attn_implementation='eager')


def make_model(
  family: str, seed: int = 0, kind=transformers.AutoModelForCausalLM, **more
):
  """A model whose every parameter is random and of an order that matters."""
  name, fields, dtype, _ = FAMILIES[family]
  config = getattr(transformers, name)(**SIZES, **fields, **more)
  torch.manual_seed(seed)
  model = kind.from_config(config)
  with torch.no_grad():
    for key, value in model.named_parameters():
      if 'norm' in key:
        value.copy_(1 + 0.3 * torch.randn_like(value))
      else:
        value.copy_(0.3 * torch.randn_like(value))
  return model.to(dtype).eval()


def logits_of(path: str, ids: np.ndarray) -> np.ndarray:
  """Float32 logits [B, S, V] of a directory.

  Loaded in float32: a cast of the model would round its rotary frequencies. By
  eager attention, the only form that has Gemma 2's cap of scores.
  """
  model = transformers.AutoModelForCausalLM.from_pretrained(path, **EAGER)
  with torch.no_grad():
    return model.eval()(torch.tensor(ids)).logits.numpy()


def scores_of(path: str, ids: np.ndarray) -> np.ndarray:
  """Float32 scores [B] of a directory of a classifier, padded on the right."""
  classifier = transformers.AutoModelForSequenceClassification
  model = classifier.from_pretrained(path, **EAGER).eval()
  ids = torch.tensor(ids)
  with torch.no_grad():
    return model(ids, attention_mask=(ids != 0).long()).logits[:, 0].numpy()


def make_classifier(family: str, seed: int = 0):
  """A classifier with one label; it pads with token 0."""
  kind = transformers.AutoModelForSequenceClassification
  return make_model(family, seed, kind, num_labels=1)


def padded_ids(seed: int, *lengths: int) -> np.ndarray:
  """Rows of these lengths, padded with 0."""
  ids = np.random.default_rng(seed).integers(3, 48, size=(len(lengths), 24))
  return np.where(np.arange(24) < np.array(lengths)[:, None], ids, 0)


def main(*families: str) -> None:
  """Writes these families, or all, beside this file."""
  folder = os.path.dirname(__file__)
  for family in families or FAMILIES:
    shard = FAMILIES[family][-1]
    path = os.path.join(folder, family)
    model = make_model(family)
    model.save_pretrained(path, max_shard_size=shard)
    os.remove(os.path.join(path, 'generation_config.json'))
    ids = np.random.default_rng(0).integers(3, 48, size=(2, 24))
    np.savez_compressed(
      os.path.join(path, 'golden.npz'),
      ids=ids.astype(np.int32),
      logits=logits_of(path, ids),
    )
  for family in families or CLASSIFIERS:
    path = os.path.join(folder, 'classifiers', family)
    make_classifier(family).save_pretrained(path)
    ids = padded_ids(0, 24, 17, 9)
    np.savez_compressed(
      os.path.join(path, 'golden.npz'),
      ids=ids.astype(np.int32),
      scores=scores_of(path, ids),
    )


if __name__ == '__main__':
  main(*sys.argv[1:])
