"""Low-rank adapters: a second parameter tree, applied without merging.

  y = x W + (x a) b * (alpha / rank)        b starts at zero

Source: "LoRA: Low-Rank Adaptation of Large Language Models" (2106.09685).
Unmerged, because adding a small update to a bfloat16 weight can round it away.
"""

from typing import Any

import jax.numpy as jnp

from rl_jax.models import spec
from rl_jax.types import Array

TARGETS = ('wq', 'wk', 'wv', 'wo', 'w_gate', 'w_up', 'w_down')


def check_targets(owner: str, targets: tuple[str, ...]) -> None:
  """Raises ValueError naming targets that no layer has, or if there is none."""
  unknown = sorted({str(name) for name in targets if name not in TARGETS})
  if unknown or not targets:
    raise ValueError(
      f'{owner}.lora_targets = {targets}: {unknown or "nothing"} is none of '
      + ', '.join(TARGETS)
    )


def num_inputs(name: str) -> int:
  """How many leading dimensions of a layer's weight are contracted."""
  return 2 if name == 'wo' else 1


def specs(layer_specs: dict, targets: tuple[str, ...], rank: int) -> dict:
  """Adapters for the stacked weights named in targets; always float32."""
  tree = {}
  for name in targets:
    base = layer_specs[name]
    split = 1 + num_inputs(name)
    fan_in = 1
    for size in base.shape[1:split]:
      fan_in *= size
    tree[name] = {
      'a': spec.ParamSpec(
        (*base.shape[:split], rank),
        'float32',
        (*base.logical_axes[:split], None),
        fan_in**-0.5,
      ),
      'b': spec.ParamSpec(
        (base.shape[0], rank, *base.shape[split:]),
        'float32',
        (base.logical_axes[0], None, *base.logical_axes[split:]),
        spec.ZEROS,
      ),
    }
  return {'layers': tree}


def delta(a: Array, b: Array, scale: float, inputs: int) -> Array:
  """The update of one stacked weight, [L, inputs..., outputs...], float32."""
  layers, rank = a.shape[0], a.shape[-1]
  in_shape, out_shape = a.shape[1 : 1 + inputs], b.shape[2:]
  product = jnp.einsum(
    'lir,lro->lio',
    a.reshape(layers, -1, rank).astype(jnp.float32),
    b.reshape(layers, rank, -1).astype(jnp.float32),
  )
  return scale * product.reshape(layers, *in_shape, *out_shape)


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
