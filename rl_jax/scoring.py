"""Token statistics of a policy, in chunks: no [B, T, V] array ever exists.

The same forward serves the sampler's check (`logp_old` against
`logp_behaviour`), the reference, and the gradient of the update.
"""

from collections.abc import Collection
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.method import Method
from rl_jax.models import heads, transformer
from rl_jax.types import Array, Trajectories

# Logits of one chunk, in elements: 2^24 floats are 64 MiB.
CHUNK_ELEMENTS = 1 << 24

# f(logits, token) by name; each is computed from one chunk of logits.
LOGP, ENTROPY, VALUES, HIDDEN = 'logp', 'entropy', 'values', 'hidden'
SELF_CERTAINTY = 'self_certainty'
KNOWN = frozenset({LOGP, ENTROPY, VALUES, HIDDEN, SELF_CERTAINTY})


def model_needs(
  method: Method, slots: tuple[str, ...] | None = None
) -> frozenset[str]:
  """The statistics that the model computes; the rest of needs is elsewhere."""
  return method.needs(slots) & KNOWN


def token_statistics(
  params: Any,
  model: transformer.ModelConfig,
  traj: Trajectories,
  needs: Collection[str],
  temperature: float,
  logits_transforms: tuple = (),
) -> dict[str, Array]:
  """Statistics [B, T] of the response tokens under params, 0 where masked.

  logp: log pi(y_t | x, y_<t) at the sampling temperature. entropy: of the same
  distribution, nats. values: of the value head. self_certainty: mean over the
  vocabulary of -log(V pi). hidden: the state that predicts the token, [B, T,
  D].
  """
  on_BT = (traj.kind_BT != types.PAD).astype(jnp.float32)
  hidden_BTD = transformer.forward(
    params, model, traj.prompt_NP, traj.prompt_mask_NP, traj.response_BT, on_BT
  )
  row = functools.partial(
    _logit_functionals,
    params,
    model,
    needs=frozenset(needs),
    temperature=temperature,
    logits_transforms=logits_transforms,
  )
  stats = _in_chunks(row, hidden_BTD, traj.response_BT, model.vocab_size)
  if VALUES in needs:
    stats[VALUES] = heads.values(params, hidden_BTD)
  stats = {k: jnp.where(traj.mask_BT > 0, v, 0.0) for k, v in stats.items()}
  if HIDDEN in needs:
    stats[HIDDEN] = hidden_BTD * traj.mask_BT[:, :, None]
  return stats


def _logit_functionals(
  params, model, hidden_BCD, token_BC, *, needs, temperature, logits_transforms
):
  logits_BCV = heads.logits(params, model, hidden_BCD) / temperature
  for transform in logits_transforms:
    logits_BCV = transform(logits_BCV)
  log_z_BC = jax.nn.logsumexp(logits_BCV, axis=-1)
  picked_BC = jnp.take_along_axis(logits_BCV, token_BC[:, :, None], axis=-1)
  stats = {LOGP: picked_BC[:, :, 0] - log_z_BC}
  if ENTROPY in needs:
    p_BCV = jnp.exp(logits_BCV - log_z_BC[:, :, None])
    # p log p -> 0 as p -> 0, also where a transform put -inf.
    finite_BCV = jnp.where(p_BCV > 0, logits_BCV, 0.0)
    stats[ENTROPY] = log_z_BC - jnp.sum(p_BCV * finite_BCV, axis=-1)
  if SELF_CERTAINTY in needs:
    mean_logp_BC = jnp.mean(logits_BCV, axis=-1) - log_z_BC
    stats[SELF_CERTAINTY] = -mean_logp_BC - jnp.log(float(model.vocab_size))
  return stats


def _in_chunks(function, hidden_BTD, token_BT, vocab_size):
  """Applies function to spans of T under remat, so that logits stay small."""
  B, T, D = hidden_BTD.shape
  span = max(1, min(T, CHUNK_ELEMENTS // (B * vocab_size)))
  if span == T:
    return jax.checkpoint(function)(hidden_BTD, token_BT)
  chunks = -(-T // span)
  pad = chunks * span - T
  hidden = jnp.pad(hidden_BTD, ((0, 0), (0, pad), (0, 0)))
  token = jnp.pad(token_BT, ((0, 0), (0, pad)))
  hidden = hidden.reshape(B, chunks, span, D).swapaxes(0, 1)
  token = token.reshape(B, chunks, span).swapaxes(0, 1)
  stats = jax.lax.map(lambda x: jax.checkpoint(function)(*x), (hidden, token))
  return {
    k: v.swapaxes(0, 1).reshape(B, chunks * span)[:, :T]
    for k, v in stats.items()
  }


def take_groups(traj: Trajectories, group_M: Array) -> Trajectories:
  """The groups at the given indices, with all their rows."""
  N = traj.num_prompts

  def take(x):
    rows = x.shape[0] // N
    picked = x.reshape(N, rows, *x.shape[1:])[group_M]
    return picked.reshape(-1, *x.shape[1:])

  return jax.tree.map(take, traj)


def split_groups(tree: Any, num_prompts: int, pieces: int) -> Any:
  """Leading [N or N*G] becomes [pieces, ...], strided over groups.

  Strided (piece m holds groups m, m + pieces, ...), because contiguous pieces
  of row-sharded arrays would move rows between devices.
  """

  def split(x):
    rows = x.shape[0] // num_prompts
    x = x.reshape(num_prompts // pieces, pieces, rows, *x.shape[1:])
    x = jnp.moveaxis(x, 1, 0)
    return x.reshape(pieces, -1, *x.shape[3:])

  return jax.tree.map(split, tree)


def merge_groups(tree: Any, num_prompts: int) -> Any:
  """Undoes split_groups on [pieces, rows, ...] arrays."""

  def merge(x):
    pieces = x.shape[0]
    rows = pieces * x.shape[1] // num_prompts
    x = x.reshape(pieces, num_prompts // pieces, rows, *x.shape[2:])
    return jnp.moveaxis(x, 0, 1).reshape(num_prompts * rows, *x.shape[3:])

  return jax.tree.map(merge, tree)


def forward_inputs(traj: Trajectories) -> Trajectories:
  """What token_statistics reads, and no more to split."""
  return traj.replace(
    logp_old_BT=None,
    logp_ref_BT=None,
    entropy_BT=None,
    values_BT=None,
    rewards={},
    reward_B=None,
    advantages_BT=None,
    returns_BT=None,
    extras={},
  )


def statistics_in_pieces(
  params: Any,
  model: transformer.ModelConfig,
  traj: Trajectories,
  needs: Collection[str],
  temperature: float,
  logits_transforms: tuple,
  pieces: int,
) -> dict[str, Array]:
  """token_statistics over strided pieces of the batch, one after the other."""
  N = traj.num_prompts

  def one(piece):
    return token_statistics(
      params, model, piece, needs, temperature, logits_transforms
    )

  if pieces == 1:
    return one(forward_inputs(traj))
  split = split_groups(forward_inputs(traj), N, pieces)
  return merge_groups(jax.lax.map(one, split), N)
