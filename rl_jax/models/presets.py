"""Sizes of public models, from their config.json, and two tiny ones."""

from typing import Any

from rl_jax.models.rope import RopeScaling
from rl_jax.models.transformer import ModelConfig


def tiny(vocab_size: int = 20) -> ModelConfig:
  """About a million parameters: characters, trained from scratch."""
  return ModelConfig(
    vocab_size=vocab_size,
    num_layers=4,
    width=128,
    num_heads=4,
    num_kv_heads=4,
    head_size=32,
    mlp_size=512,
    max_positions=512,
  )


def small(**sizes: Any) -> ModelConfig:
  """Two layers of width 64 for the alphabet of a task; sizes replace its own.

  A run replaces the vocabulary of 1 by the size of the task's alphabet.
  """
  own: dict[str, Any] = {
    'vocab_size': 1,
    'num_layers': 2,
    'width': 64,
    'num_heads': 2,
    'num_kv_heads': 2,
    'head_size': 32,
    'mlp_size': 256,
  }
  return ModelConfig(**(own | sizes))


def _smollm2(layers, width, num_heads, kv_heads, mlp_size, theta):
  return ModelConfig(
    vocab_size=49152,
    num_layers=layers,
    width=width,
    num_heads=num_heads,
    num_kv_heads=kv_heads,
    head_size=64,
    mlp_size=mlp_size,
    rope_theta=theta,
    norm_eps=1e-5,
    max_positions=8192,
  )


def _qwen2p5(layers, width, num_heads, kv_heads, head_size, mlp_size, **fields):
  large = width >= 3584  # 7B: untied, and its vocabulary is padded further
  own: dict[str, Any] = {
    'rope_theta': 1e6,
    'tied_embeddings': not large,
    'max_positions': 32768,
  }
  return ModelConfig(
    vocab_size=152064 if large else 151936,
    num_layers=layers,
    width=width,
    num_heads=num_heads,
    num_kv_heads=kv_heads,
    head_size=head_size,
    mlp_size=mlp_size,
    qkv_bias=True,
    **(own | fields),
  )


def _qwen3(layers, width, num_heads, mlp_size, tied=True):
  return ModelConfig(
    vocab_size=151936,
    num_layers=layers,
    width=width,
    num_heads=num_heads,
    num_kv_heads=8,
    head_size=128,
    mlp_size=mlp_size,
    rope_theta=1e6,
    tied_embeddings=tied,
    qk_norm=True,
    max_positions=40960,
  )


def _gemma(layers, width, num_heads, kv_heads, mlp_size, **fields):
  return ModelConfig(
    num_layers=layers,
    width=width,
    num_heads=num_heads,
    num_kv_heads=kv_heads,
    head_size=256,
    mlp_size=mlp_size,
    activation='gelu_tanh',
    norm_offset=True,
    post_norms=True,
    scaled_embeddings=True,
    query_pre_attn_scalar=256.0,
    **fields,
  )


_MATH = {'rope_theta': 1e4, 'max_positions': 4096}
_DISTILLED = {
  'rope_theta': 1e4,
  'max_positions': 131072,
  'tied_embeddings': False,
}
PRESETS = {
  'tiny': tiny(),
  'SmolLM2-135M': _smollm2(30, 576, 9, 3, 1536, 1e5),
  'SmolLM2-360M': _smollm2(32, 960, 15, 5, 2560, 1e5),
  'SmolLM2-1.7B': _smollm2(24, 2048, 32, 32, 8192, 1.3e5),
  'Qwen2.5-0.5B': _qwen2p5(24, 896, 14, 2, 64, 4864),
  'Qwen2.5-1.5B': _qwen2p5(28, 1536, 12, 2, 128, 8960),
  'Qwen2.5-3B': _qwen2p5(36, 2048, 16, 2, 128, 11008),
  'Qwen2.5-7B': _qwen2p5(28, 3584, 28, 4, 128, 18944),
  'Qwen2.5-14B': _qwen2p5(48, 5120, 40, 8, 128, 13824, norm_eps=1e-5),
  'Qwen2.5-32B': _qwen2p5(64, 5120, 40, 8, 128, 27648, norm_eps=1e-5),
  'Qwen2.5-Math-1.5B': _qwen2p5(28, 1536, 12, 2, 128, 8960, **_MATH),
  'Qwen2.5-Math-7B': _qwen2p5(28, 3584, 28, 4, 128, 18944, **_MATH),
  'DeepSeek-R1-Distill-Qwen-1.5B': _qwen2p5(
    28, 1536, 12, 2, 128, 8960, **_DISTILLED
  ),
  'DeepSeek-R1-Distill-Qwen-7B': _qwen2p5(
    28, 3584, 28, 4, 128, 18944, **_DISTILLED
  ),
  'Qwen3-0.6B': _qwen3(28, 1024, 16, 3072),
  'Qwen3-1.7B': _qwen3(28, 2048, 16, 6144),
  'Qwen3-4B': _qwen3(36, 2560, 32, 9728),
  'Qwen3-8B': _qwen3(36, 4096, 32, 12288, tied=False),
  'Qwen3-30B-A3B': ModelConfig(
    vocab_size=151936,
    num_layers=48,
    width=2048,
    num_heads=32,
    num_kv_heads=4,
    head_size=128,
    mlp_size=768,
    num_experts=128,
    experts_per_token=8,
    normalized_gates=True,
    rope_theta=1e6,
    tied_embeddings=False,
    qk_norm=True,
    max_positions=40960,
  ),
  'OLMoE-1B-7B': ModelConfig(
    vocab_size=50304,
    num_layers=16,
    width=2048,
    num_heads=16,
    num_kv_heads=16,
    head_size=128,
    mlp_size=1024,
    num_experts=64,
    experts_per_token=8,
    norm_eps=1e-5,
    tied_embeddings=False,
    qk_norm=True,
    qk_norm_whole=True,
    max_positions=4096,
  ),
  'Gemma-2-2B': _gemma(
    26,
    2304,
    8,
    4,
    9216,
    vocab_size=256000,
    window=4096,
    windowed=tuple(range(0, 26, 2)),
    attention_cap=50.0,
    logit_cap=30.0,
    max_positions=8192,
  ),
  'Gemma-3-1B': _gemma(
    26,
    1152,
    4,
    1,
    6912,
    vocab_size=262144,
    rope_theta=1e6,
    qk_norm=True,
    window=512,
    windowed=tuple(i for i in range(26) if (i + 1) % 6),
    window_rope_theta=1e4,
    max_positions=32768,
  ),
  'Mistral-7B': ModelConfig(
    vocab_size=32000,
    num_layers=32,
    width=4096,
    num_heads=32,
    num_kv_heads=8,
    head_size=128,
    mlp_size=14336,
    norm_eps=1e-5,
    tied_embeddings=False,
    window=4096,
    windowed=tuple(range(32)),
    max_positions=32768,
  ),
  'TinyLlama-1.1B': ModelConfig(
    vocab_size=32000,
    num_layers=22,
    width=2048,
    num_heads=32,
    num_kv_heads=4,
    head_size=64,
    mlp_size=5632,
    norm_eps=1e-5,
    tied_embeddings=False,
    max_positions=2048,
  ),
  'Llama-3.1-8B': ModelConfig(
    vocab_size=128256,
    num_layers=32,
    width=4096,
    num_heads=32,
    num_kv_heads=8,
    head_size=128,
    mlp_size=14336,
    rope_theta=5e5,
    rope_scaling=RopeScaling(
      factor=8.0,
      low_freq_factor=1.0,
      high_freq_factor=4.0,
      original_max_positions=8192,
    ),
    norm_eps=1e-5,
    tied_embeddings=False,
    max_positions=131072,
  ),
  'Llama-3-8B': ModelConfig(
    vocab_size=128256,
    num_layers=32,
    width=4096,
    num_heads=32,
    num_kv_heads=8,
    head_size=128,
    mlp_size=14336,
    rope_theta=5e5,
    norm_eps=1e-5,
    tied_embeddings=False,
    max_positions=8192,
  ),
  'Llama-3.2-1B': ModelConfig(
    vocab_size=128256,
    num_layers=16,
    width=2048,
    num_heads=32,
    num_kv_heads=8,
    head_size=64,
    mlp_size=8192,
    rope_theta=5e5,
    rope_scaling=RopeScaling(
      factor=32.0,
      low_freq_factor=1.0,
      high_freq_factor=4.0,
      original_max_positions=8192,
    ),
    norm_eps=1e-5,
    max_positions=131072,
  ),
}
