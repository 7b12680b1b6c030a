"""A decoder: Llama 3, SmolLM2, Mistral, Qwen2 and 3, Gemma 2 and 3, OLMoE.

Functions of (params, cfg, arrays). The prompt of a group is encoded once and
its G responses attend to the same keys and values, both in training (forward)
and in sampling (`decoding`), by the same `layers`: the log-probs of sampler and
trainer agree.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.checks import INT32, check_numbers, checked, chosen, ranged
from rl_jax.models import (
  attention,
  attention_kernels,
  critic,
  experts,
  heads,
  layers,
  lora,
  packing,
  rope,
  sequence_parallel,
  spec,
)
from rl_jax.runtime import layout
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array

MOST_LAYERS = 1000  # larger numbers in a file are errors
DTYPES = ('float32', 'bfloat16', 'float16')


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ModelConfig:
  """Everything that fixes the program; JSON-friendly and hashable."""

  vocab_size: int = ranged(low=1, high=INT32)
  num_layers: int = ranged(low=1, high=MOST_LAYERS)
  width: int = ranged(low=1, high=INT32)
  num_heads: int = ranged(low=1, high=INT32)
  num_kv_heads: int = ranged(low=1, high=INT32)
  head_size: int = ranged(low=2, high=INT32)
  mlp_size: int = ranged(low=1, high=INT32)  # of one expert, if there are any
  num_experts: int = ranged(0, 0, INT32)  # 0: one MLP for all tokens
  experts_per_token: int = ranged(0, 0, INT32)
  normalized_gates: bool = False  # of a token's experts, with sum 1
  rope_theta: float = ranged(10000.0, 0.0, open_low=True)
  rope_scaling: rope.Scaling | None = None
  norm_eps: float = ranged(1e-6, 0.0, open_low=True)
  tied_embeddings: bool = True
  qkv_bias: bool = False
  qk_norm: bool = False
  qk_norm_whole: bool = False  # over all heads at once, not over each
  norm_offset: bool = False  # norms multiply by 1 + their parameter
  post_norms: bool = False  # norms of what attention and MLP add to the stream
  scaled_embeddings: bool = False  # by the root of the width
  activation: str = chosen('silu', tuple(layers.ACTIVATIONS))  # of the MLP
  # Scores of attention are divided by its root; None: head_size.
  query_pre_attn_scalar: float | None = ranged(None, 0.0, open_low=True)
  # Scores, and the logits, become cap * tanh(x / cap).
  attention_cap: float | None = ranged(None, 0.0, open_low=True)
  logit_cap: float | None = ranged(None, 0.0, open_low=True)
  # The layers `windowed` attend to that many tokens, the query's included.
  window: int | None = ranged(None, 1, rope.EVERYTHING - 1)
  windowed: tuple[int, ...] = ()
  # Of their rotations, which are never scaled.
  window_rope_theta: float | None = ranged(None, 0.0, open_low=True)
  max_positions: int = ranged(2048, 1, INT32)
  # What the program is for; a run takes that of its devices.
  platform: Platform = Platform()
  param_dtype: str = chosen('float32', DTYPES)
  compute_dtype: str = chosen('float32', DTYPES)
  # 'plain', or a kernel for all but decode_step.
  attention: str = chosen('plain', ('plain', *attention_kernels.KERNELS))
  # How experts are computed, see there; a run chooses by platform.
  expert_products: str = chosen(experts.ALL, (experts.ALL, experts.CHOSEN))
  remat: bool = False  # keep only the layers' inputs for the backward pass
  value_head: bool = False
  critic: str = chosen(critic.SHARED, critic.CRITICS)  # what the head reads
  num_values: int = ranged(1, 1, INT32)  # outputs of the value head
  value_layers: int = ranged(1, 1, 2)  # linear layers of the value head
  # A token whose state the value head does not score: it takes the last other
  # one, as classifiers of transformers do with their pad token.
  unscored_id: int | None = ranged(None, 0)
  lora_rank: int = ranged(0, 0, INT32)  # 0: no adapters
  lora_alpha: float = ranged(16.0, 0.0, open_low=True)
  lora_targets: tuple[str, ...] = lora.TARGETS

  def __post_init__(self):
    check_numbers(self)
    if not isinstance(self.rope_scaling, rope.Scaling | None):
      raise ValueError(
        f'ModelConfig.rope_scaling = {self.rope_scaling!r:.80} is none of '
        'RopeScaling, LinearScaling, YarnScaling'
      )
    if self.num_heads % self.num_kv_heads:
      raise ValueError(
        f'ModelConfig.num_heads = {self.num_heads} is not a multiple of '
        f'num_kv_heads = {self.num_kv_heads}'
      )
    if self.head_size % 2:
      raise ValueError(f'ModelConfig.head_size = {self.head_size} is odd')
    if self.num_values > 1 and not self.value_head:
      raise ValueError(
        f'ModelConfig.num_values = {self.num_values} needs value_head = True'
      )
    lora.check_targets('ModelConfig', self.lora_targets)
    self._check_windows()
    self._check_experts()

  def _check_experts(self):
    few = 1 <= self.experts_per_token <= self.num_experts
    if bool(self.num_experts) != few or self.experts_per_token and not few:
      raise ValueError(
        f'ModelConfig.experts_per_token = {self.experts_per_token} and '
        f'num_experts = {self.num_experts}: expected 1 to num_experts, or 0 '
        'and 0'
      )
    if self.normalized_gates and not self.num_experts:
      raise ValueError('ModelConfig.normalized_gates without num_experts')
    if self.qk_norm_whole and not self.qk_norm:
      raise ValueError('ModelConfig.qk_norm_whole without qk_norm')

  def _check_windows(self):
    if bool(self.windowed) != (self.window is not None):
      raise ValueError(
        f'ModelConfig.window = {self.window} and windowed = {self.windowed}: '
        'give both or neither'
      )
    if any(i not in range(self.num_layers) for i in self.windowed):
      raise ValueError(
        f'ModelConfig.windowed = {self.windowed}: the layers are 0 to '
        f'{self.num_layers - 1}'
      )
    if self.window_rope_theta is not None and self.window is None:
      raise ValueError('ModelConfig.window_rope_theta without a window')


def specs(cfg: ModelConfig) -> dict[str, Any]:
  """The tree of ParamSpec: model and, if on, lora, value_head and critic."""
  L, D = cfg.num_layers, cfg.width
  H, J, K = cfg.num_heads, cfg.num_kv_heads, cfg.head_size

  def param(shape, axes, init):
    return spec.ParamSpec(shape, cfg.param_dtype, axes, init)

  def stacked(shape, axes, init):
    return param((L, *shape), ('layers', *axes), init)

  # Outputs that are added to the residual stream shrink with its depth.
  residual = (2 * L) ** -0.5
  width, heads_, kv = 'width', ('heads', 'head_size'), ('kv_heads', 'head_size')
  scale = spec.ZEROS if cfg.norm_offset else spec.ONES
  layers = {
    'attn_norm': stacked((D,), (None,), scale),
    'wq': stacked((D, H, K), (width, *heads_), D**-0.5),
    'wk': stacked((D, J, K), (width, *kv), D**-0.5),
    'wv': stacked((D, J, K), (width, *kv), D**-0.5),
    'wo': stacked((H, K, D), (*heads_, width), residual * (H * K) ** -0.5),
    'mlp_norm': stacked((D,), (None,), scale),
    **_mlp_specs(cfg, stacked, residual),
  }
  if cfg.qkv_bias:
    layers['bq'] = stacked((H, K), heads_, spec.ZEROS)
    layers['bk'] = stacked((J, K), kv, spec.ZEROS)
    layers['bv'] = stacked((J, K), kv, spec.ZEROS)
  if cfg.qk_norm:
    q, k = ((H,), (J,)) if cfg.qk_norm_whole else ((), ())
    layers['q_norm'] = stacked((*q, K), (None,) * (len(q) + 1), scale)
    layers['k_norm'] = stacked((*k, K), (None,) * (len(k) + 1), scale)
  if cfg.post_norms:
    layers['attn_post_norm'] = stacked((D,), (None,), scale)
    layers['mlp_post_norm'] = stacked((D,), (None,), scale)
  vocab = cfg.vocab_size
  model = {
    'embed': param((vocab, D), ('vocab', width), 0.02),
    'layers': layers,
    'final_norm': param((D,), (None,), scale),
  }
  if not cfg.tied_embeddings:
    model['lm_head'] = param((D, vocab), (width, 'vocab'), 0.02)
  tree: dict[str, Any] = {'model': model}
  if cfg.lora_rank:
    tree['lora'] = lora.specs(layers, cfg.lora_targets, cfg.lora_rank)
  if cfg.value_head:
    tree['value_head'] = heads.value_specs(D, cfg.num_values, cfg.value_layers)
  if critic.has_own(cfg):
    tree['critic'] = critic.specs(model)
  return tree


def _mlp_specs(cfg: ModelConfig, stacked: Any, residual: float) -> dict:
  """One MLP, or those of all experts and the router."""
  D, F, E = cfg.width, cfg.mlp_size, cfg.num_experts
  if not E:
    return {
      'w_gate': stacked((D, F), ('width', 'mlp'), D**-0.5),
      'w_up': stacked((D, F), ('width', 'mlp'), D**-0.5),
      'w_down': stacked((F, D), ('mlp', 'width'), residual * F**-0.5),
    }
  axes = experts.AXES
  return {
    'router': stacked((D, E), ('width', None), D**-0.5),
    'w_gate': stacked((E, D, F), axes['w_gate'], D**-0.5),
    'w_up': stacked((E, D, F), axes['w_up'], D**-0.5),
    'w_down': stacked((E, F, D), axes['w_down'], residual * F**-0.5),
  }


class Tokens(NamedTuple):
  """The tokens that are read; context_BT: see forward.

  inputs_BTD: added to the embeddings of the response tokens; None: nothing.
  """

  prompt_NP: Array
  prompt_mask_NP: Array
  response_BT: Array
  response_mask_BT: Array
  context_BT: Array | None = None
  inputs_BTD: Array | None = None


def forward(
  params: dict[str, Any],
  cfg: ModelConfig,
  prompt_NP: Array,
  prompt_mask_NP: Array,
  response_BT: Array,
  response_mask_BT: Array,
  capacity: int | None = None,
  context_BT: Array | None = None,
) -> Array:
  """Hidden states [B, T, D]; that at t predicts response token t.

  The tokens of a group are one sequence, its prompt and then its G responses,
  for everything but attention: no prompt is encoded twice. States at padding
  are 0. capacity: the tokens of a group are packed into so many slots (see
  packing), so that only attention computes padding of responses. context: the
  first response token that each token sees, right after the prompt; None: 0.
  Responses then have plain attention, and tokens cannot be split.
  """
  tokens = Tokens(
    prompt_NP, prompt_mask_NP, response_BT, response_mask_BT, context_BT
  )
  return states(params, cfg, tokens, capacity)


def states(
  params: dict[str, Any],
  cfg: ModelConfig,
  tokens: Tokens,
  capacity: int | None = None,
) -> Array:
  """Returns what forward returns, where real numbers may come beside tokens.

  Raises: ValueError for inputs where responses are split over the mesh.
  """
  if layout.parts(tokens.response_BT.shape[1], 'tokens') > 1:
    if tokens.inputs_BTD is not None:
      raise ValueError('inputs_BTD needs whole responses: mesh.sequence = 1')
    hidden = sequence_parallel.forward(params, cfg, *tokens[:3])
    return jnp.where(tokens.response_mask_BT[..., None] > 0, hidden, 0)
  hidden, _ = _states(params, cfg, tokens, capacity, routing=False)
  return hidden


def forward_and_routing(
  params: dict[str, Any],
  cfg: ModelConfig,
  prompt_NP: Array,
  prompt_mask_NP: Array,
  response_BT: Array,
  response_mask_BT: Array,
  capacity: int | None = None,
  context_BT: Array | None = None,
) -> tuple[Array, Array]:
  """Returns what forward returns, and experts.routing [B, T, 2 E] of the same
  places.

  The latter is the mean over layers. Tokens cannot be split over the mesh.
  """
  tokens = Tokens(
    prompt_NP, prompt_mask_NP, response_BT, response_mask_BT, context_BT
  )
  hidden, routed = _states(params, cfg, tokens, capacity, routing=True)
  assert routed is not None
  return hidden, routed


def _states(
  params: dict[str, Any],
  cfg: ModelConfig,
  tokens: Tokens,
  capacity: int | None,
  routing: bool,
) -> tuple[Array, Array | None]:
  """Hidden states, and those of routers if they are asked for."""
  prompt_NP, prompt_mask_NP, response_BT, response_mask_BT = tokens[:4]
  context_BT, inputs_BTD = tokens.context_BT, tokens.inputs_BTD
  (N, P), (B, T) = prompt_NP.shape, response_BT.shape
  G, S = B // N, T - 1  # the last token predicts nothing

  # Splits an axis of P + G * S tokens into its two parts.
  def parts(x):
    return (x[:, :P], x[:, P:].reshape(N, G, S, *x.shape[2:]))

  context_BS = None if context_BT is None else context_BT[:, :S]
  token, position, real = _sequences(
    prompt_NP, prompt_mask_NP, response_BT, response_mask_BT, context_BS
  )
  slots = None if capacity is None else P + capacity
  pack, unpack = packing.movers(real, slots)
  tables = rope.tables(cfg, pack(position))

  def body(carry, layer):
    x, routed = carry
    qkv = layers.qkv(layer, cfg, x, tables)
    prompt, response = zip(*(parts(unpack(y)) for y in qkv), strict=True)
    attended = _attend(cfg, layer, prompt, response, prompt_mask_NP, context_BS)
    x = layers.add_attention(layer, cfg, x, pack(attended))
    if routing:
      routed = routed + layers.routing(layer, cfg, x)
    x = layers.add_mlp(layer, cfg, x)
    return (layout.constrain(x, 'rows', None, None), routed), None

  x = layers.embed(params, cfg, pack(token))
  if inputs_BTD is not None:
    inputs_NUD = inputs_BTD[:, :S].reshape(N, G * S, -1)
    inputs_NLD = jnp.pad(inputs_NUD, ((0, 0), (P, 0), (0, 0)))
    x += pack(inputs_NLD).astype(x.dtype)
  x = layout.constrain(x, 'rows', None, None)
  none = jnp.zeros((*x.shape[:2], 2 * cfg.num_experts)) if routing else None
  body = jax.checkpoint(body, policy=_kept_products(cfg))
  stacked = layers.stacked_layers(params, cfg)
  (x, routed), _ = lax.scan(body, (x, none), stacked)
  x = layers.norm(x, params['model']['final_norm'], cfg)

  def before(y):
    return _before_tokens(*parts(unpack(y)), response_mask_BT)

  hidden = before(x)
  return hidden, None if routed is None else before(routed / cfg.num_layers)


def _kept_products(cfg):
  """Returns what the backward pass of a layer does not compute again.

  Without remat the products with weights are kept. Recomputing the rest is
  faster on CPU than storing it, and takes less memory.
  """
  if cfg.remat:
    return None
  return attention_kernels.saveable(
    jax.checkpoint_policies.dots_with_no_batch_dims_saveable
  )


def _before_tokens(x_NPD, x_NGSD, response_mask_BT):
  """[B, T, D] at the places that predict the tokens of responses."""
  N, G, _, D = x_NGSD.shape
  first = jnp.broadcast_to(x_NPD[:, None, -1:], (N, G, 1, D))
  x_BTD = jnp.concatenate([first, x_NGSD], axis=2)
  x_BTD = x_BTD.reshape(*response_mask_BT.shape, D)
  x_BTD = jnp.where(response_mask_BT[..., None] > 0, x_BTD, 0)
  return layout.constrain(x_BTD, 'rows', None, None)


def _sequences(
  prompt_NP, prompt_mask_NP, response_BT, response_mask_BT, context_BS
):
  """(token, position, 0 at padding of responses), each [N, P + G * S]."""
  N, S = prompt_NP.shape[0], response_BT.shape[1] - 1

  def group(x_BS):
    return x_BS.reshape(N, -1)

  def join(*parts):
    return jnp.concatenate(parts, axis=1)

  start_N = prompt_mask_NP.astype(jnp.int32).sum(axis=1)
  step = jnp.tile(jnp.arange(S, dtype=jnp.int32), response_BT.shape[0] // N)
  behind = start_N[:, None] + step[None]
  if context_BS is not None:
    behind -= group(context_BS)
  return (
    join(prompt_NP, group(response_BT[:, :S])),
    join(rope.prompt_positions(prompt_mask_NP), behind),
    join(jnp.ones_like(prompt_mask_NP), group(response_mask_BT[:, 1:])),
  )


def _attend(
  cfg: ModelConfig,
  layer: dict[str, Any],
  prompt: tuple,
  response: tuple,
  prompt_mask_NP: Array,
  context_BS: Array | None,
) -> Array:
  """Attention of prompts and their responses, [N, P + G * S, heads, size].

  Each is (q, k, v): of prompts [N, P, ...], of responses [N, G, S, ...].
  """
  if cfg.attention != 'plain' and context_BS is None:
    return attention_kernels.attend(
      cfg.attention,
      prompt,
      response,
      prompt_mask_NP,
      *layers.causal(cfg, layer),
    )
  (qp, kp, vp), (q, k, v) = prompt, response
  limits = layers.limits(cfg, layer)
  attended = attention.attend_prompt(qp, kp, vp, prompt_mask_NP, limits)
  N, G, S = q.shape[:3]
  if not S:
    return attended
  k, v = (y.reshape(N * G, S, *y.shape[3:]) for y in (k, v))
  own = attention.attend_whole_responses(
    q,
    (kp, vp, prompt_mask_NP),
    (k, v),
    (jnp.arange(S), jnp.arange(S)),
    limits,
    causal=True,
    context_BS=context_BS,
  )
  own = own.reshape(N, G * S, *attended.shape[2:])
  return jnp.concatenate([attended, own], axis=1)
