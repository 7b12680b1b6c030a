"""Values of tokens, without gradient and without all logits."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.learning.statistics import (
  Forward,
  in_microbatches,
  states_around,
)
from rl_jax.models import critic, heads
from rl_jax.pieces.ops.masking import last_token
from rl_jax.types import POLICY, Array, Trajectories


def token_values(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """The value head after every token, [B, T]."""

  def one(rows: Trajectories):
    reader = critic.params_of(params, forward.model)
    _, after_BTD = states_around(forward, reader, rows)
    return heads.values(params, after_BTD)

  return in_microbatches(forward, traj, one)


def label_values(
  forward: Forward, labels: tuple[int, int], params: Any, traj: Trajectories
) -> Array:
  """logit(labels[0]) - logit(labels[1]) of every token before it, [B, T].

  sigmoid of it is the probability of the first label among both, for models
  that judge by a token of their answer.
  """

  def one(rows: Trajectories):
    before_BTD, _ = states_around(forward, params, rows)
    ids = jnp.asarray(labels, jnp.int32)
    first, second = jnp.moveaxis(
      heads.logits_of(params, forward.model, before_BTD, ids), -1, 0
    )
    return first - second

  return in_microbatches(forward, traj, one)


def final_values(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  head_weights: tuple[float, ...] = (),
) -> Array:
  """The value head after the last token of the policy, [B]; 0 without one.

  With unscored_id of the model: after the last other token; if there is none,
  after the prompt. head_weights: the sum of all heads with these weights.
  """
  unscored = forward.model.unscored_id

  def read(params: Any, hidden: Array):
    if not head_weights:
      return heads.values(params, hidden)
    return heads.all_values(params, hidden) @ jnp.asarray(head_weights)

  def one(rows: Trajectories):
    reader = critic.params_of(params, forward.model)
    before_BTD, after_BTD = states_around(forward, reader, rows)
    value_BT = read(params, after_BTD)
    if unscored is None:
      return last_token(value_BT, rows.mask_BT)
    scored_BT = rows.mask_BT * (rows.response_BT != unscored)
    return jnp.where(
      scored_BT.any(axis=1),
      last_token(value_BT, scored_BT),
      read(params, before_BTD[:, 0]),
    )

  return in_microbatches(forward, traj, one)


def closed(
  traj: Trajectories, closing: tuple[int, ...], eos_ids: tuple[int, ...]
) -> Trajectories:
  """Rows with the tokens that a chat template writes after the end token.

  They are then the last ones of the policy. Rows cut at their limit stay as
  they are. closing: as ChatML's newline; () changes nothing.
  """
  if not closing:
    return traj
  S = len(closing)

  def longer(x_BT: Array):
    return jnp.pad(x_BT, ((0, 0), (0, S), (0, 0))[: x_BT.ndim])

  last_B1 = jnp.maximum(traj.length_B[:, None] - 1, 0)
  token_B1 = jnp.take_along_axis(traj.response_BT, last_B1, axis=1)
  ended_B1 = (
    jnp.isin(token_B1, np.array(eos_ids)) & (traj.length_B > 0)[:, None]
  )
  response_BT = longer(traj.response_BT)
  behind_BT = jnp.arange(response_BT.shape[1])[None] - traj.length_B[:, None]
  new_BT = ended_B1 & (behind_BT >= 0) & (behind_BT < S)
  token_BT = jnp.asarray(closing, jnp.int32)[jnp.clip(behind_BT, 0, S - 1)]
  return traj.replace(
    response_BT=jnp.where(new_BT, token_BT, response_BT),
    kind_BT=jnp.where(new_BT, POLICY, longer(traj.kind_BT)),
    mask_BT=jnp.where(new_BT, 1.0, longer(traj.mask_BT)),
    length_B=traj.length_B + S * ended_B1[:, 0],
    logp_behaviour_BT=longer(traj.logp_behaviour_BT),
    turn_BT=None,
    context_BT=None,
    target_BT=None,
    inputs_BTF=None if traj.inputs_BTF is None else longer(traj.inputs_BTF),
    turns=None,
  )
