"""The feed-forward part of a layer with experts, of which a token takes a few.

  p = softmax(h router) over all experts, in float32
  g_e = p_e for the k largest, 0 for the others; with cfg.normalized_gates
    divided by their sum
  y = sum over e of (g_e * activation(h w_gate,e) * (h w_up,e)) w_down,e

No expert has a limit of tokens and none is dropped: what a token gets depends
on no other token (tier E1). It is computed in one of two ways:

  all     every expert on every token; most products are multiplied by 0
  chosen  tokens sorted by expert, products of ragged blocks; as many FLOP as
          the gates need where these are kernels: XLA's on TPU, ours on GPU,
          as XLA multiplies each token with every expert there, once for each
          of those that it takes

Which experts a token takes is a comparison: where two probabilities differ by
rounding only, sampler and trainer may take different ones.

Source: "Qwen3 Technical Report" (2505.09388), "OLMoE: Open Mixture-of-Experts
Language Models" (2409.02060).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import mixed_precision, products, ragged_products
from rl_jax.runtime import layout
from rl_jax.types import Array

ALL, CHOSEN = 'all', 'chosen'
AXES = {
  'w_gate': ('experts', 'width', None),
  'w_up': ('experts', 'width', None),
  'w_down': ('experts', None, 'width'),
}
WEIGHTS = tuple(AXES)


class OfLayer(NamedTuple):
  """The matrices of one layer among those of all, for kernels to read there."""

  w_LEDF: Array
  number: Array


def in_place(cfg: Any) -> bool:
  """Returns whether products can read a layer's experts among those of all."""
  ours = ragged_products.runs(cfg.platform, cfg.compute_dtype)
  return bool(cfg.num_experts) and cfg.expert_products == CHOSEN and ours


def apart(cfg: Any, layers: dict) -> tuple[dict, dict]:
  """(what a scan over layers slices, the experts that are read in place)."""
  if not in_place(cfg):
    return layers, {}
  base = dict(layers['base'])
  return {**layers, 'base': base}, {name: base.pop(name) for name in WEIGHTS}


def joined(layer: dict, experts: dict, number: Array) -> dict:
  """The layer of that number with the experts that `apart` took out."""
  own = {name: OfLayer(x, number) for name, x in experts.items()}
  return {**layer, 'base': layer['base'] | own}


def feed_forward(
  layer: dict, cfg: Any, h: Array, activation: Callable[[Array], Array]
) -> Array:
  """The sum over experts, of states [..., D]."""
  adapters = {n: layer['lora'][n] for n in WEIGHTS if n in layer['lora']}
  weights = {name: layer['base'][name] for name in WEIGHTS}
  if cfg.expert_products == ALL:
    x_MD = h.reshape(-1, cfg.width)
    y_MD = _all(
      cfg, activation, x_MD, layer['base']['router'], weights, adapters
    )
    return y_MD.reshape(h.shape)
  weights = {name: _cast(cfg, name, x, h.dtype) for name, x in weights.items()}
  leaves, tree = jax.tree.flatten((weights, adapters))
  split = layout.split_over(cfg.num_experts, 'experts')

  def local(h, router_DE, *leaves):
    """The part of the sum that this device's experts have."""
    x_MD = h.reshape(-1, cfg.width)
    trees = jax.tree.unflatten(tree, leaves)
    y_MD = _chosen(cfg, activation, x_MD, router_DE, trees, split)
    return y_MD.reshape(h.shape)

  def by_expert(x):
    """Returns the axes of an array [(L,) E, ..], or of a layer's number."""
    return (*(None,) * (x.ndim - 3), 'experts', None, None) if x.ndim else ()

  rows = ('rows', *(None,) * (h.ndim - 1))
  axes = [rows, (None, None), *map(by_expert, leaves)]
  return layout.on_parts(local, [h, layer['base']['router'], *leaves], axes)


def _cast(cfg: Any, name: str, weight: Any, dtype: Any) -> Any:
  """The weight in the dtype of states; if it was another, whole over fsdp."""
  if isinstance(weight, OfLayer):
    return weight
  if cfg.platform.is_cpu or weight.dtype == dtype:
    return weight.astype(dtype)
  # XLA would gather it in its own dtype, and turn the weights of all layers.
  # The first layout is that of its gradient, whose sum would be turned, too.
  weight = layout.constrain(weight.astype(dtype), *AXES[name])
  return layout.gathered(lax.optimization_barrier(weight), *AXES[name])


def route(cfg: Any, x_MD: Array, router_DE: Array) -> tuple[Array, Array]:
  """The k experts of each token and their gates, both [M, k]; float32 gates."""
  gate_Mk, expert_Mk = _largest(cfg, _probabilities(x_MD, router_DE))
  if cfg.normalized_gates:
    gate_Mk = gate_Mk / gate_Mk.sum(axis=-1, keepdims=True)
  return expert_Mk, gate_Mk


def routing(cfg: Any, h: Array, router_DE: Array) -> Array:
  """The router's output for states [..., D], float32[..., 2 E].

  The probabilities of all experts, and after them 1 for those that are taken.
  """
  p = _probabilities(h.reshape(-1, cfg.width), router_DE)
  _, expert_Mk = lax.top_k(p, cfg.experts_per_token)
  taken_ME = jax.nn.one_hot(expert_Mk, cfg.num_experts).sum(axis=1)
  both = jnp.concatenate([p, taken_ME], axis=-1)
  return both.reshape(*h.shape[:-1], 2 * cfg.num_experts)


def _largest(cfg: Any, p_ME: Array) -> tuple[Array, Array]:
  """The k largest of each row and their places, the first of equal ones first.

  XLA sorts all of a row. For a GPU a sort is much to compile, in every layer of
  a decoding program again, so few rows compare their numbers in pairs there.
  """
  tokens, k = len(p_ME), cfg.experts_per_token
  few = tokens * k <= ragged_products.MOST_COMPARED
  if cfg.platform.name != 'cuda' or not few:
    return lax.top_k(p_ME, k)
  expert_E = jnp.arange(cfg.num_experts, dtype=jnp.int32)
  one_MEE, other_MEE = p_ME[:, :, None], p_ME[:, None]
  # NaN is neither, and is in the order of the experts, too.
  earlier_1EE = (expert_E[None] < expert_E[:, None])[None]
  before_MEE = (other_MEE > one_MEE) | (earlier_1EE & ~(other_MEE < one_MEE))
  place_ME = before_MEE.sum(axis=2, dtype=jnp.int32)
  here_MkE = place_ME[:, None] == jnp.arange(k)[None, :, None]
  gate_Mk = jnp.where(here_MkE, p_ME[:, None], 0).sum(axis=2)
  return gate_Mk, jnp.where(here_MkE, expert_E[None, None], 0).sum(axis=2)


def _probabilities(x_MD, router_DE) -> Array:
  """softmax(h router), float32[M, E]."""
  router_DE = router_DE.astype(x_MD.dtype)
  return jax.nn.softmax(mixed_precision.product('md,de->me', x_MD, router_DE))


def _all(cfg, activation, x_MD, router_DE, weights, adapters) -> Array:
  """Every expert computes every token."""
  expert_Mk, gate_Mk = route(cfg, x_MD, router_DE)
  chosen_MkE = jax.nn.one_hot(expert_Mk, cfg.num_experts)
  gate_ME = (chosen_MkE * gate_Mk[..., None]).sum(axis=1).astype(x_MD.dtype)

  def widened(name):
    y_MEF = products.dense(x_MD, weights[name].transpose(1, 0, 2), 1)
    if name in adapters:
      a, b = (adapters[name][part].astype(x_MD.dtype) for part in 'ab')
      low_MER = products.dense(x_MD, a.transpose(1, 0, 2), 1)
      y_MEF += jnp.einsum('mer,erf->mef', low_MER, b) * _scale(cfg)
    return y_MEF

  h_MEF = activation(widened('w_gate')) * widened('w_up') * gate_ME[..., None]
  y_MD = products.dense(h_MEF, weights['w_down'], 2)
  if 'w_down' in adapters:
    a, b = (adapters['w_down'][part].astype(x_MD.dtype) for part in 'ab')
    low_MER = jnp.einsum('mef,efr->mer', h_MEF, a)
    y_MD += products.dense(low_MER, b, 2) * _scale(cfg)
  return y_MD


def _chosen(cfg, activation, x_MD, router_DE, trees, split) -> Array:
  """Tokens sorted by expert; of each device its experts, summed over `split`.

  trees: the weights and the adapters of the experts.
  Gathers by permutations only, whose transposes need no sum: results do not
  depend on the order in which a device adds.
  """
  weights, adapters = trees
  k, own = cfg.experts_per_token, jax.tree.leaves(weights)[0].shape[-3]
  expert_Mk, gate_Mk = route(cfg, x_MD, router_DE)
  first = lax.axis_index(split) * own if split else 0
  # Tokens of other devices' experts come last, and belong to no block.
  expert_R = expert_Mk.reshape(-1) - first
  expert_R = jnp.where((expert_R >= 0) & (expert_R < own), expert_R, own)
  order_R, place_R = ragged_products.sorted_by_block(expert_R)
  sizes_E = ragged_products.block_sizes(expert_R, own)
  mine_R1 = (jnp.arange(expert_R.size) < sizes_E.sum())[:, None]

  ours = ragged_products.runs(cfg.platform, cfg.compute_dtype)
  ragged = ragged_products.product if ours else lax.ragged_dot

  def permuted(x, order):
    return x.at[order].get(unique_indices=True, mode='promise_in_bounds')

  def product(x, weight):
    """0 beyond the blocks, where a kernel may leave anything."""
    if isinstance(weight, OfLayer):
      y = ragged_products.product_of_layer(x, *weight, sizes_E)
    else:
      y = ragged(x, weight.astype(x.dtype), sizes_E)
    return jnp.where(mine_R1, y, 0)

  def project(name, x):
    y = product(x, weights[name])
    if name in adapters:
      low = product(x, adapters[name]['a'])
      y += product(low, adapters[name]['b']) * _scale(cfg)
    return y

  x_RD = permuted(jnp.repeat(x_MD, k, axis=0), order_R)
  x_RD = jnp.where(mine_R1, x_RD, 0)
  gate_R1 = permuted(gate_Mk.reshape(-1, 1), order_R).astype(x_MD.dtype)
  h_RF = activation(project('w_gate', x_RD)) * project('w_up', x_RD) * gate_R1
  y_RD = permuted(project('w_down', h_RF), place_R)
  y_MkD = y_RD.reshape(-1, k, cfg.width).astype(jnp.float32)
  y_MD = y_MkD.sum(axis=1)
  y_MD = lax.psum(y_MD, split) if split else y_MD
  return y_MD.astype(x_MD.dtype)


def _scale(cfg) -> float:
  """The factor on what adapters add, alpha / rank."""
  return cfg.lora_alpha / cfg.lora_rank
