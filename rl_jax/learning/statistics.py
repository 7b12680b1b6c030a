"""Token statistics of a policy, in chunks: no [B, T, V] array ever exists.

The same forward serves the sampler's check (`logp_old` against
`logp_behaviour`), the reference, and the gradient of the update.
"""

from collections.abc import Callable, Collection, Iterable
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.learning.hidden_states import (
  Forward,
  routed_states,
  states_around,
  states_before,
)
from rl_jax.method import Method
from rl_jax.models import critic, heads, packing
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces.logits.transforms import (
  apply_transforms,
  policies_of,
  read_values,
)
from rl_jax.pieces.ops import groups
from rl_jax.pieces.ops.masking import places, zero_masked
from rl_jax.pieces.roles import LogitTransform, ValueStatistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.pieces.statistics.critic_value import CriticValue
from rl_jax.runtime import layout
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array, Trajectories

# Logits of one chunk on one device, in elements: 2^24 floats are 64 MiB.
CHUNK_ELEMENTS = 1 << 24
# As many times on accelerators: every chunk reads the output weights again, and
# 110 tokens of a vocabulary of 152k are too few for a fast product.
ACCELERATOR_FACTOR = 8

# What the core computes; all else is a statistic of pieces.statistics.
LOGP, ENTROPY, VALUES, HIDDEN = 'logp', 'entropy', 'values', 'hidden'
VALUES_AFTER, VALUE_HEADS = 'values_after', 'value_heads'
VALUE_HEADS_AFTER = 'value_heads_after'
AFTER = frozenset({VALUES_AFTER, VALUE_HEADS_AFTER})
CRITIC = AFTER | {VALUES, VALUE_HEADS}
ROUTER_PROBS, ROUTER_TAKEN = 'router_probs', 'router_taken'
ROUTER = frozenset({ROUTER_PROBS, ROUTER_TAKEN})
CORE = CRITIC | ROUTER | {LOGP, ENTROPY, HIDDEN}

# What a forward pass computes: names of the core, and statistics of pieces.
Needs = Collection[Any]


def chunk_elements(platform: Platform) -> int:
  """Returns CHUNK_ELEMENTS on a platform."""
  factor = 1 if platform.is_cpu else ACCELERATOR_FACTOR
  return CHUNK_ELEMENTS * factor


def name_of(need: Any) -> str:
  """The key of a statistic among others: itself, or its name."""
  return need if isinstance(need, str) else need.name


def model_needs(
  method: Method, slots: tuple[str, ...] | None = None
) -> frozenset[Any]:
  """The needs of the method that the model computes; others are elsewhere."""
  return frozenset(
    need
    for need in method.needs(slots)
    if not isinstance(need, str) or need in CORE
  )


def _policies(
  transforms: tuple[LogitTransform, ...], needs: Needs, params: Any
):
  """Parameters of the other policies that logits are computed of, by name."""
  others = policies_of(transforms, params)
  names = {name for need in _statistics(needs) for name in need.policies}
  return others | {n: params['policies'][n] for n in sorted(names)}


def _statistics(needs: Needs):
  """Those that are computed of logits."""
  return [need for need in needs if not isinstance(need, (str, CriticValue))]


def token_statistics(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  needs: Needs,
  transforms: tuple[LogitTransform, ...] = (),
) -> dict[str, Array]:
  """Statistics [B, T] of the response tokens under params, 0 where masked.

  With traj.target_BT they are of these tokens, after the same response. Masked
  is all but trained tokens, of ObservationLogp all but observations.

  logp: log pi(y_t | x, y_<t) at the sampling temperature. entropy: of the same
  distribution, nats. values: of the value head before the token, values_after:
  after it, as a reward model reads it; both of its first output. value_heads,
  value_heads_after: all outputs, [B, T, H]. hidden: the state that predicts the
  token, [B, T, D]. router_probs: of each expert in that state, router_taken: 1
  for those that are taken, means over layers, [B, T, E]. All else as its
  statistic says (pieces.statistics). The transforms and statistics see the
  logits of those of params['policies'] that they name, without gradient.
  """
  on_BT = (traj.kind_BT != types.PAD).astype(jnp.float32)

  def states(policy: Any):
    return states_before(forward, policy, traj)

  after_BTD = routing_BTF = None
  if not AFTER.isdisjoint(needs):
    hidden_BTD, after_BTD = states_around(forward, params, traj)
  elif not ROUTER.isdisjoint(needs):
    hidden_BTD, routing_BTF = routed_states(forward, params, traj)
  else:
    hidden_BTD = states(params)
  others = _policies(transforms, needs, params)
  hidden = [hidden_BTD]
  hidden += [jax.lax.stop_gradient(states(p)) for p in others.values()]
  row = functools.partial(
    _logit_functionals,
    forward,
    params,
    group_tokens_NU=traj.response_BT.reshape(traj.num_prompts, -1),
    needs=frozenset(needs),
    transforms=transforms,
  )
  pack, unpack = _movers(on_BT, traj.num_prompts, needs, forward.capacity)
  scored_BT = traj.response_BT if traj.target_BT is None else traj.target_BT
  arrays = map(pack, (scored_BT, traj.mask_BT, *hidden))
  stats = _in_chunks(row, tuple(arrays), forward.model)
  stats = jax.tree.map(unpack, stats)
  stats |= _values(forward, params, traj, needs, hidden_BTD, after_BTD)
  if routing_BTF is not None:
    halves = jnp.split(routing_BTF, 2, axis=-1)
    routed = zip((ROUTER_PROBS, ROUTER_TAKEN), halves, strict=True)
    stats |= {name: x for name, x in routed if name in needs}
  stats = {
    k: _whole_rows(zero_masked(v, places(k, traj))) for k, v in stats.items()
  }
  if HIDDEN in needs:
    stats[HIDDEN] = hidden_BTD * traj.mask_BT[:, :, None]
  return stats


def _values(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  needs: Needs,
  before_BTD: Array,
  after_BTD: Array | None,
) -> dict[str, Array]:
  """Outputs of the value head, from the states that its model gives it."""
  if CRITIC.isdisjoint(needs):
    return {}
  policy_BTD = before_BTD, after_BTD
  if forward.model.critic == critic.DETACHED:
    before_BTD, after_BTD = jax.lax.stop_gradient((before_BTD, after_BTD))
  elif critic.has_own(forward.model):
    own = critic.params_of(params, forward.model)
    if after_BTD is None:
      before_BTD = states_before(forward, own, traj)
    else:
      before_BTD, after_BTD = states_around(forward, own, traj)

  def every(own_BTD: Array, policy_BTD: Array):
    """All outputs; only the first reads a residual critic's own layers."""
    value_BTH = heads.all_values(params, own_BTD)
    if forward.model.critic != critic.RESIDUAL:
      return value_BTH
    rest_BTH = heads.all_values(params, policy_BTD)[..., 1:]
    return jnp.concatenate([value_BTH[..., :1], rest_BTH], axis=-1)

  def first(own_BTD: Array, _):
    return heads.values(params, own_BTD)

  before, after = zip((before_BTD, after_BTD), policy_BTD, strict=True)
  read: dict[str, tuple[Any, Any]] = {
    VALUES: (first, before),
    VALUE_HEADS: (every, before),
    VALUES_AFTER: (first, after),
    VALUE_HEADS_AFTER: (every, after),
  }
  return {
    name: f(*states) for name, (f, states) in read.items() if name in needs
  }


def _movers(on_BT: Array, num_prompts: int, needs: Needs, capacity: int | None):
  """(pack, unpack) between [B, T, ...] and what logits are computed of."""
  B, T = on_BT.shape
  split = layout.parts(T, 'tokens') > 1
  by_place = any(need.by_place for need in _statistics(needs))
  if capacity is None or split or by_place:
    return packing.movers(on_BT, None)

  def group(x: Array):
    return x.reshape(num_prompts, -1, *x.shape[2:])

  # One token more a row than is fed: the prompt predicts the first.
  pack, unpack = packing.movers(group(on_BT), capacity + B // num_prompts)
  return (
    lambda x: pack(group(x)),
    lambda x: unpack(x).reshape(B, T, *x.shape[2:]),
  )


def _whole_rows(x: Array) -> Array:
  """[B, T] with the tokens of a row on one device: pieces scan along them."""
  return layout.constrain(x, 'rows', None) if x.ndim == 2 else x


def _logit_functionals(
  forward: Forward,
  params: Any,
  token_BC: Array,
  mask_BC: Array,
  hidden_BCD: Array,
  *others_BCD: Array,
  group_tokens_NU: Array,
  needs: Needs,
  transforms: tuple[LogitTransform, ...],
):
  model, temperature = forward.model, forward.temperature
  logits_BCV = heads.logits(params, model, hidden_BCD)
  policies = _policies(transforms, needs, params)
  others = {
    name: jax.lax.stop_gradient(heads.logits(policy, model, x_BCD))
    for (name, policy), x_BCD in zip(policies.items(), others_BCD, strict=True)
  }
  own = zip(policies.values(), others_BCD, strict=True)
  states = {'': (params, hidden_BCD), **dict(zip(policies, own, strict=True))}
  values = _action_values(states, model, _value_readers(needs, transforms))
  raw_BCV, logits_BCV = (
    logits_BCV,
    apply_transforms(
      transforms,
      temperature,
      logits_BCV,
      others,
      jax.lax.stop_gradient(values.get('')),
    ),
  )
  if transforms:
    # Rounding may put a token on the other side of a limit than in the sampler.
    taken_BCV = jnp.arange(model.vocab_size)[None, None] == token_BC[:, :, None]
    lost_BCV = taken_BCV & jnp.isneginf(logits_BCV)
    logits_BCV = jnp.where(lost_BCV, raw_BCV / temperature, logits_BCV)
  chunk = Chunk(
    logits_BCV=logits_BCV,
    token_BC=token_BC,
    mask_BC=mask_BC,
    group_tokens_NU=group_tokens_NU,
    values=values,
    others={
      name: apply_transforms(
        transforms,
        temperature,
        x_BCV,
        others,
        jax.lax.stop_gradient(values.get('')),
      )
      for name, x_BCV in others.items()
    },
  )
  stats = _of_tokens(chunk, ENTROPY in needs)
  return stats | {need.name: need(chunk) for need in _statistics(needs)}


def _value_readers(
  needs: Needs, transforms: tuple[LogitTransform, ...]
) -> set[str]:
  """Names of the policies whose action values are read; '' the trained one."""
  read = {
    need.policy
    for need in _statistics(needs)
    if isinstance(need, ValueStatistic)
  }
  return read | {''} if read_values(transforms) else read


def _of_tokens(chunk: Chunk, entropy: bool) -> dict[str, Array]:
  """logp of the tokens, and the entropy if it is asked for, [B, C]."""
  logits_BCV, log_z_BC = chunk.logits_BCV, chunk.log_z_BC
  picked_BC = jnp.take_along_axis(
    logits_BCV, chunk.token_BC[:, :, None], axis=-1
  )
  stats = {LOGP: picked_BC[:, :, 0] - log_z_BC}
  if entropy:
    p_BCV = jnp.exp(logits_BCV - log_z_BC[:, :, None])
    # p log p -> 0 as p -> 0, also where a transform put -inf.
    finite_BCV = jnp.where(p_BCV > 0, logits_BCV, 0.0)
    stats[ENTROPY] = log_z_BC - jnp.sum(p_BCV * finite_BCV, axis=-1)
  return stats


def _action_values(
  states: dict[str, tuple[Any, Array]], model: ModelConfig, names: Iterable[str]
):
  """Outputs [B, C, H] of the value heads of these policies, by name.

  states: (parameters, hidden states) by name, '' the trained policy, the only
    one with a gradient.
  """

  def one(name: str):
    policy, hidden_BCD = states[name]
    if model.critic == critic.DETACHED:
      hidden_BCD = jax.lax.stop_gradient(hidden_BCD)
    outputs_BCH = heads.all_values(policy, hidden_BCD)
    return jax.lax.stop_gradient(outputs_BCH) if name else outputs_BCH

  return {name: one(name) for name in sorted(names)}


def _in_chunks(
  function: Callable[..., Any], arrays: tuple[Array, ...], model: ModelConfig
):
  """Applies function to spans of T under remat, so that logits stay small."""
  B, T = arrays[0].shape[:2]
  # Of this device's part: every chunk of an update costs a gather and a
  # reduction of the output weights over fsdp, so the fewer the better.
  rows = B // layout.parts(B, 'rows')
  columns = model.vocab_size // layout.parts(model.vocab_size, 'vocab')
  devices = layout.parts(T, 'tokens')
  own = T // devices
  most = chunk_elements(model.platform)
  span = max(1, min(own, most // (rows * columns)))
  function = jax.checkpoint(function)
  if span == own:
    return function(*arrays)
  chunks = -(-own // span)
  span = -(-own // chunks)  # of equal sizes: the last one is not mostly padding

  def split(x: Array):
    """[chunks, B, tokens]: a chunk has the same places of every device's T."""
    x = x.reshape(B, devices, own, *x.shape[2:])
    pad = [(0, 0)] * 2 + [(0, chunks * span - own)] + [(0, 0)] * (x.ndim - 3)
    x = jnp.pad(x, pad).reshape(B, devices, chunks, span, *x.shape[3:])
    x = jnp.moveaxis(x, 2, 0)
    return x.reshape(chunks, B, devices * span, *x.shape[4:])

  def merge(x: Array):
    x = x.reshape(chunks, B, devices, span, *x.shape[3:])
    x = jnp.moveaxis(x, 0, 2)
    x = x.reshape(B, devices, chunks * span, *x.shape[4:])[:, :, :own]
    return x.reshape(B, T, *x.shape[3:])

  stats = jax.lax.map(lambda x: function(*x), tuple(map(split, arrays)))
  return jax.tree.map(merge, stats)


def forward_inputs(forward: Forward, traj: Trajectories) -> Trajectories:
  """Returns what token_statistics reads, and no more to split.

  With forward.group_rows smaller groups, in the same order of rows, each with
  the prompt to itself. Its tokens are then computed once a part, with the same
  sum of gradients.
  """
  rows = forward.group_rows or traj.group_size
  parts = traj.group_size // rows

  def again(x_N: Array):
    return jnp.repeat(x_N, parts, axis=0) if parts > 1 else x_N

  return traj.replace(
    prompt_NP=again(traj.prompt_NP),
    prompt_mask_NP=again(traj.prompt_mask_NP),
    prompt_id_N=again(traj.prompt_id_N),
    group_size=rows,
    logp_old_BT=None,
    logp_ref_BT=None,
    entropy_BT=None,
    values_BT=None,
    values_BTH=None,
    rewards={},
    reward_B=None,
    advantages_BT=None,
    returns_BT=None,
    returns_BTH=None,
    edges=None,
    extras={},
  )


def statistics_in_microbatches(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  needs: Needs,
  transforms: tuple[LogitTransform, ...] = (),
) -> dict[str, Array]:
  """token_statistics over strided microbatches, one after the other."""

  return in_microbatches(
    forward,
    traj,
    lambda rows: token_statistics(forward, params, rows, needs, transforms),
  )


def critic_values(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  needs: Needs,
) -> dict[str, Array]:
  """Each CriticValue of the needs by its name, [B, T], 0 where masked."""
  wanted = [need for need in needs if isinstance(need, CriticValue)]
  found: dict[str, Array] = {}
  for policy in sorted({need.policy for need in wanted}):
    own = [need for need in wanted if need.policy == policy]
    read = functools.partial(
      _critic_values, forward, params['policies'][policy], own
    )
    found |= in_microbatches(forward, traj, read)
  return found


def _critic_values(
  forward: Forward, params: Any, needs: Needs, rows: Trajectories
):
  """Evaluates the value heads that `needs` name for one policy, [B, T] each."""
  states = states_around(forward, params, rows)
  every = {VALUE_HEADS, VALUE_HEADS_AFTER}
  heads_BTH = _values(forward, params, rows, every, *states)
  found = {}
  for need in needs:
    place = VALUE_HEADS_AFTER if need.after else VALUE_HEADS
    value_BT = heads_BTH[place][..., need.head]
    found[need.name] = zero_masked(value_BT, rows.mask_BT)
  return found


def in_microbatches(
  forward: Forward, traj: Trajectories, one: Callable[[Trajectories], Any]
) -> Any:
  """Arrays of all rows, by a function of the rows of a microbatch."""
  rows = forward_inputs(forward, traj)
  if forward.microbatches == 1:
    return one(rows)
  split = groups.split(rows, rows.num_prompts, forward.microbatches)
  return groups.merge(jax.lax.map(one, split), rows.num_prompts)
