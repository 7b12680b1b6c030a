"""A decoder as in a textbook; load by the `plain_forward` fixture."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import models


def plain_frequencies(cfg, windowed):
  """Radians a position of each pair of channels, and a factor, from papers."""
  share = np.arange(0, cfg.head_size, 2) / cfg.head_size
  if windowed and cfg.window_rope_theta:
    return cfg.window_rope_theta**-share, 1.0
  frequency, s = cfg.rope_theta**-share, cfg.rope_scaling
  if isinstance(s, models.LinearScaling):
    return frequency / s.factor, 1.0
  if isinstance(s, models.YarnScaling):
    # Here 4 turns are at pair 0.36 and 1 turn at 1.42: from 0 to 2.
    ramp = np.array([0, 0.5, 1])
    return frequency * (1 - ramp) + frequency / 4.0 * ramp, 1.2
  for i, f in enumerate(frequency if s else ()):
    turns = s.original_max_positions * f / (2 * np.pi)
    if turns < s.low_freq_factor:
      frequency[i] = f / s.factor
    elif turns < s.high_freq_factor:
      smooth = (turns - s.low_freq_factor) / (
        s.high_freq_factor - s.low_freq_factor
      )
      frequency[i] = (1 - smooth) * f / s.factor + smooth * f
  return frequency, 1.0


def plain_mlp(cfg, w, h, activation):
  """One MLP, or the sum of those of the experts that each token takes."""

  def mlp(gate, up, down):
    return (activation(h @ gate) * (h @ up)) @ down

  weights = (w['w_gate'], w['w_up'], w['w_down'])
  if not cfg.num_experts:
    return mlp(*weights)
  p = jax.nn.softmax(h @ w['router'])
  least = jnp.sort(p)[:, -cfg.experts_per_token, None]
  gate = jnp.where(p >= least, p, 0)
  if cfg.normalized_gates:
    gate /= gate.sum(-1, keepdims=True)
  return jnp.einsum('se,esd->sd', gate, jax.vmap(mlp)(*weights))


def plain_hidden(params, cfg, token_S):
  """Textbook forward of one sequence, float32[S, D]: no cache, no padding."""
  model = params['model']
  repeats = cfg.num_heads // cfg.num_kv_heads

  def norm(x, scale):
    axes = tuple(range(-scale.ndim, 0))
    scale = jnp.broadcast_to(scale, x.shape) + cfg.norm_offset
    mean = (x**2).mean(axes, keepdims=True)
    return x / jnp.sqrt(mean + cfg.norm_eps) * scale

  def rope(x, windowed):
    frequency, factor = plain_frequencies(cfg, windowed)
    angle = np.arange(len(token_S))[:, None] * frequency[None]
    cos, sin = (
      jnp.asarray(f(angle) * factor)[:, None] for f in (np.cos, np.sin)
    )
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

  x = model['embed'][jnp.asarray(token_S)]
  if cfg.scaled_embeddings:
    x = x * np.sqrt(cfg.width)
  distance = np.subtract.outer(*[np.arange(len(token_S))] * 2)
  scale = (cfg.query_pre_attn_scalar or cfg.head_size) ** -0.5
  activation = {
    'silu': jax.nn.silu,
    'gelu_tanh': lambda y: (
      0.5 * y * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    ),
  }[cfg.activation]
  for i in range(cfg.num_layers):
    windowed = i in cfg.windowed
    seen = (distance >= 0) & (distance < (cfg.window if windowed else 1e9))
    w = jax.tree.map(lambda y, i=i: y[i], model['layers'])
    h = norm(x, w['attn_norm'])
    q, k, v = (jnp.einsum('sd,dhk->shk', h, w[n]) for n in ('wq', 'wk', 'wv'))
    if cfg.qkv_bias:
      q, k, v = q + w['bq'][None], k + w['bk'][None], v + w['bv'][None]
    if cfg.qk_norm:
      q, k = norm(q, w['q_norm']), norm(k, w['k_norm'])
    q, k = rope(q, windowed), rope(k, windowed)
    k, v = jnp.repeat(k, repeats, 1), jnp.repeat(v, repeats, 1)
    scores = jnp.einsum('shk,thk->hst', q, k) * scale
    if cfg.attention_cap:
      scores = cfg.attention_cap * jnp.tanh(scores / cfg.attention_cap)
    attention = jax.nn.softmax(jnp.where(seen[None], scores, -jnp.inf))
    out = jnp.einsum('hst,thk->shk', attention, v)
    out = jnp.einsum('shk,hkd->sd', out, w['wo'])
    x = x + (norm(out, w['attn_post_norm']) if cfg.post_norms else out)
    h = norm(x, w['mlp_norm'])
    out = plain_mlp(cfg, w, h, activation)
    x = x + (norm(out, w['mlp_post_norm']) if cfg.post_norms else out)
  return norm(x, model['final_norm'])


def plain_forward(params, cfg, prompt_NP, mask_NP, response_BT, mask_BT):
  """Each row by itself: real prompt and response tokens, then zeros."""
  (rows, length), width = response_BT.shape, prompt_NP.shape[1]
  token_BS = np.zeros((rows, width + length), np.int32)
  start_B = np.repeat(mask_NP.sum(1).astype(int), rows // len(prompt_NP))
  for b, start in enumerate(start_B):
    prompt = prompt_NP[b * len(prompt_NP) // rows]
    token_BS[b, :start] = prompt[width - start :]
    token_BS[b, start : start + length] = response_BT[b]
  hidden = jax.vmap(lambda token_S: plain_hidden(params, cfg, token_S))(
    token_BS
  )
  at_BT = start_B[:, None] - 1 + np.arange(length)[None]
  hidden = jnp.take_along_axis(hidden, jnp.asarray(at_BT)[..., None], 1)
  return hidden * jnp.asarray(mask_BT)[..., None]
