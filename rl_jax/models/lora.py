"""Low-rank adapters: a second parameter tree, applied without merging.

  y = x W + (x a) b * (alpha / rank)        b starts at zero

Source: "LoRA: Low-Rank Adaptation of Large Language Models" (2106.09685).
Unmerged, because adding a small update to a bfloat16 weight can round it away.
"""

import math
from typing import Any

import jax.numpy as jnp

from rl_jax.models import spec
from rl_jax.types import Array

TARGETS = ('wq', 'wk', 'wv', 'wo', 'w_gate', 'w_up', 'w_down')
# Names of the same matrices in files of Hugging Face, and so in PEFT.
_PEFT = {
  'q_proj': 'wq',
  'k_proj': 'wk',
  'v_proj': 'wv',
  'o_proj': 'wo',
  'gate_proj': 'w_gate',
  'up_proj': 'w_up',
  'down_proj': 'w_down',
}


def check_targets(owner: str, targets: tuple[str, ...]) -> None:
  """Raises ValueError naming targets that no layer has, or if there is none."""
  unknown = sorted(set(map(str, targets)) - set(TARGETS))
  if unknown or not targets:
    ours = [_PEFT[name] for name in unknown if name in _PEFT]
    hint = f'. Did you mean {", ".join(ours)}?' if ours else ''
    raise ValueError(
      f'{owner}.lora_targets = {targets}: {unknown or "nothing"} is none of '
      f'{", ".join(TARGETS)}{hint}'
    )


def num_inputs(name: str) -> int:
  """Returns how many leading dimensions of a layer's weight are contracted."""
  return 2 if name == 'wo' else 1


def specs(layer_specs: dict, targets: tuple[str, ...], rank: int) -> dict:
  """Adapters for the stacked weights named in targets; always float32."""
  tree = {}
  for name in targets:
    base = layer_specs[name]
    # Every layer, and every expert, has its own adapters.
    stacks = 2 if 'experts' in base.logical_axes else 1
    split = stacks + num_inputs(name)
    tree[name] = {
      'a': spec.ParamSpec(
        (*base.shape[:split], rank),
        'float32',
        (*base.logical_axes[:split], None),
        math.prod(base.shape[stacks:split]) ** -0.5,
      ),
      'b': spec.ParamSpec(
        (*base.shape[:stacks], rank, *base.shape[split:]),
        'float32',
        (*base.logical_axes[:stacks], None, *base.logical_axes[split:]),
        spec.ZEROS,
      ),
    }
  return {'layers': tree}


def delta(a: Array, b: Array, scale: float, inputs: int) -> Array:
  """The update of one stacked weight, [L, inputs..., outputs...], float32.

  Of experts [L, E, inputs..., outputs...].
  """
  stacks, rank = a.ndim - 1 - inputs, a.shape[-1]
  shape = (*a.shape[:-1], *b.shape[stacks + 1 :])
  a, b = a.astype(jnp.float32), b.astype(jnp.float32)
  product = a.reshape(*a.shape[:stacks], -1, rank) @ b.reshape(
    *b.shape[: stacks + 1], -1
  )
  return scale * product.reshape(shape)


def merge(params: dict[str, Any], cfg: Any) -> dict[str, Any]:
  """Returns params without 'lora', its updates added to the model.

  For export. The sum is rounded to the dtype of the model's weights.
  """
  if 'lora' not in params:
    return params
  layers = dict(params['model']['layers'])
  for name, adapter in params['lora']['layers'].items():
    update = delta(
      adapter['a'],
      adapter['b'],
      cfg.lora_alpha / cfg.lora_rank,
      num_inputs(name),
    )
    weight = layers[name]
    layers[name] = (weight.astype(jnp.float32) + update).astype(weight.dtype)
  merged = {k: v for k, v in params.items() if k != 'lora'}
  merged['model'] = {**params['model'], 'layers': layers}
  return merged
