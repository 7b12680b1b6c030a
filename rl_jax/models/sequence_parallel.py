"""The forward pass with long responses split over the mesh's sequence axis.

Each device of the axis holds the tokens of one span of all responses, and the
whole prompts (each device computes them). In attention the keys and values of
all spans are gathered, layer by layer, while queries, scores and everything
else stay split: the scores and what is kept for the backward pass shrink with
the axis; the weights do not.
"""

from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import attention, layers, rope
from rl_jax.runtime import layout, mesh
from rl_jax.types import Array


def forward(
  params: dict[str, Any],
  cfg: Any,
  prompt_NP: Array,
  prompt_mask_NP: Array,
  response_BT: Array,
) -> Array:
  """Like transformer.forward, but not 0 at padding; [B, T, D], split along T.

  Raises: ValueError for attention kernels, which need whole responses.
  """
  if cfg.attention != 'plain':
    raise ValueError(
      f'ModelConfig.attention = {cfg.attention!r} needs whole responses, but '
      "the mesh's sequence axis splits them. Allowed: 'plain'"
    )
  T = response_BT.shape[1]
  # Slot t is fed token t - 1, so that its state predicts token t. Slot 0 has
  # none: no query attends to it, and the prompt's last state replaces it.
  fed_BT = jnp.pad(response_BT[:, :-1], ((0, 0), (1, 0)))
  fed_BTD = layers.embed(params, cfg, fed_BT)
  fed_BTD = layout.constrain(fed_BTD, 'rows', 'tokens', None)
  x_NPD = layers.embed(params, cfg, prompt_NP)

  def span(params, x_NPD, prompt_mask_NP, fed_BSD, slot_1S):
    return _span(params, cfg, x_NPD, prompt_mask_NP, fed_BSD, slot_1S[0], T)

  hidden = layout.by_tokens(span, (False, False, False, True, True))(
    params,
    x_NPD,
    prompt_mask_NP,
    fed_BTD,
    jnp.arange(T, dtype=jnp.int32)[None],
  )
  return layout.constrain(hidden, 'rows', 'tokens', None)


def _span(params, cfg, x_NPD, prompt_mask_NP, fed_BSD, slot_S, T):
  """States of the slots of one device."""
  (N, P), (B, S) = x_NPD.shape[:2], fed_BSD.shape[:2]
  G, D = B // N, cfg.width

  # Splits an axis of P + G * S tokens into its two parts.
  def parts(x):
    return (x[:, :P], x[:, P:].reshape(N, G, S, *x.shape[2:]))

  x = jnp.concatenate([x_NPD, fed_BSD.reshape(N, G * S, D)], axis=1)
  start_N = prompt_mask_NP.astype(jnp.int32).sum(axis=1)
  step = jnp.tile(slot_S - 1, G)
  position = jnp.concatenate(
    [rope.prompt_positions(prompt_mask_NP), start_N[:, None] + step[None]],
    axis=1,
  )
  tables = rope.tables(cfg, position)

  def whole(y):
    y = y.reshape(B, S, *y.shape[3:])
    return lax.all_gather(y, mesh.SEQUENCE, axis=1, tiled=True)

  def body(x, layer):
    qkv = layers.qkv(layer, cfg, x, tables)
    (qp, q), (kp, k), (vp, v) = map(parts, qkv)
    limits = layers.limits(cfg, layer)
    attended = attention.attend_prompt(qp, kp, vp, prompt_mask_NP, limits)
    own = attention.attend_whole_responses(
      q,
      (kp, vp, prompt_mask_NP),
      (whole(k), whole(v)),
      (slot_S - 1, jnp.arange(T) - 1),
      limits,
      causal=False,
    )
    own = own.reshape(N, G * S, *attended.shape[2:])
    attended = jnp.concatenate([attended, own], axis=1)
    x = layers.finish_layer(layer, cfg, x, attended)
    return layout.constrain(x, 'rows', None, None), None

  policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
  policy = None if cfg.remat else policy
  x, _ = lax.scan(
    jax.checkpoint(body, policy=policy),
    layout.constrain(x, 'rows', None, None),
    layers.stacked_layers(params, cfg),
  )
  norm = params['model']['final_norm']
  x_NPD, x_NGSD = parts(layers.norm(x, norm, cfg))
  first = (slot_S == 0)[None, None, :, None]
  hidden = jnp.where(
    jnp.broadcast_to(first, x_NGSD.shape),
    jnp.broadcast_to(x_NPD[:, None, -1:], x_NGSD.shape),
    x_NGSD,
  )
  return hidden.reshape(B, S, D)
