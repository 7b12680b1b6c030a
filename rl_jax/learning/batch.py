"""Makes advantages of scored rollouts, once per rollout."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from rl_jax import checks
from rl_jax.method import PIECE_TUPLES, Method
from rl_jax.pieces import calls, row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  loss_mask,
  masked_mean,
  masked_var,
  safe_sqrt,
  zero_masked,
)
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import Array, Metrics, Trajectories

TOKEN_FIELDS = (
  'logp_behaviour_BT',
  'logp_old_BT',
  'logp_ref_BT',
  'entropy_BT',
  'values_BT',
  'values_BTH',
)


def make_batch(
  method: Method, traj: Trajectories, method_state: dict[str, Any]
) -> tuple[Trajectories, dict[str, Any], Metrics]:
  """Fills advantages_BT, returns_BT and edges; updates valid_B and weight_B.

  In this order: rows without a finite reward are taken out; shaping; the group
  filter, which sees rewards before shaping; credit; the value target and the
  pairs, which see rewards after shaping. Rows of an opponent that are not
  trained are invalid from credit on. What credit leaves [B] is broadcast over
  the mask. reward_B stays the unshaped reward.
  """
  traj = _clean(traj)
  states = dict(method_state)
  reward = traj.reward_B
  reward = _through(method, 'shaping', reward, traj, states)
  metrics = _metrics(traj)
  if method.group_filter is not None:
    path = f'group_filter.{type(method.group_filter).__name__}'
    keep_N = _apply(method.group_filter, path, traj.reward_B, traj, states)
    keep_B = jnp.repeat(keep_N, traj.group_size)
    traj = traj.replace(weight_B=traj.weight_B * keep_B)
    metrics['batch/kept_group_fraction'] = (keep_N > 0).mean()
  traj = _without_rivals(traj)
  credit = _through(method, 'credit', reward, traj, states)
  for piece in method.credit:
    metrics |= piece.measure(traj)
  traj = traj.replace(advantages_BT=_token_credit(credit, traj))
  if method.value_target is not None:
    path = f'value_target.{type(method.value_target).__name__}'
    target = _apply(method.value_target, path, reward, traj, states)
    name = 'returns_BTH' if target.ndim == 3 else 'returns_BT'
    traj = traj.replace(**{name: _token_credit(target, traj)})
  if method.pairs is not None:
    path = f'pairs.{type(method.pairs).__name__}'
    edges = _apply(method.pairs, path, reward, traj, states)
    traj = traj.replace(edges=edges)
  metrics['batch/trained_tokens'] = loss_mask(traj).sum()
  return traj, states, metrics


def _through(
  method: Method,
  slot: str,
  credit: Array,
  traj: Trajectories,
  states: dict[str, Any],
):
  """The credit after all pieces of one slot of the method, in order.

  Raises:
    ValueError: a piece that takes a number per row comes after one that gives
      every token its own.
  """
  assert slot in PIECE_TUPLES
  for path, piece in method.pieces_of(slot):
    try:
      credit = _apply(piece, path, credit, traj, states)
    except AssertionError as error:
      if credit.ndim == 1:
        raise
      raise ValueError(
        f'method.{path} takes one number per row, but a piece before it gives '
        'every token its own: put it earlier'
      ) from error
  return credit


def _apply(
  piece: Callable[[CreditContext], Any],
  path: str,
  credit: Array,
  traj: Trajectories,
  states: dict[str, Any],
):
  """Returns what a piece makes of the credit; its state in `states` is
  renewed.
  """
  out = calls.credit(path, piece, CreditContext(credit, traj, states.get(path)))
  if out.state is not None:
    states[path] = out.state
  return out.value


def _clean(traj: Trajectories) -> Trajectories:
  """Takes out rows with a non-finite reward and zeroes masked statistics."""
  finite_B = jnp.isfinite(traj.reward_B)
  fields = {
    name: zero_masked(value, traj.mask_BT)
    for name, value in checks.values(traj, TOKEN_FIELDS).items()
    if value is not None
  }
  return traj.replace(
    reward_B=jnp.where(finite_B, traj.reward_B, 0.0),
    valid_B=jnp.where(finite_B, traj.valid_B, 0.0),
    weight_B=jnp.where(finite_B, traj.weight_B, 0.0),
    **fields,
  )


def _without_rivals(traj: Trajectories) -> Trajectories:
  """Rows of an opponent that are not trained become invalid.

  Shaping has compared the policy with them; in a baseline or a scale they would
  stand for samples of the policy.
  """
  if 'opponent_B' not in traj.extras:
    return traj
  rival_B = (traj.extras['opponent_B'] > 0) & (traj.weight_B == 0)
  return traj.replace(valid_B=jnp.where(rival_B, 0.0, traj.valid_B))


def _token_credit(credit: Array, traj: Trajectories) -> Array:
  """[B] or [B, T] -> [B, T], exactly 0 on masked tokens and invalid rows.

  Targets of several value heads stay [B, T, H].
  """
  if credit.ndim == 1:
    credit = jnp.broadcast_to(credit[:, None], traj.mask_BT.shape)
  live_BT = (traj.mask_BT > 0) & (traj.valid_B > 0)[:, None]
  return zero_masked(credit, live_BT)


def _metrics(traj: Trajectories) -> Metrics:
  """Standard metrics of the rollout, over valid rows of the prompt itself.

  Rewards of samples only, where a batch has recorded rows beside them.
  reward/group_std: mean of the standard deviations (ddof 1) inside groups,
  which falls before success does where training collapses (RAGEN).
  """
  reward_B, valid_B = traj.reward_B, traj.valid_B
  # Rows with a hint, in a mode not chosen or not yet ended do not count.
  for key in ('foreign_B', 'forced_B', 'waits_B'):
    if key in traj.extras:
      valid_B = valid_B * (traj.extras[key] == 0)
  # Rewards of records say how good the data are, not how good the policy is.
  sampled_B = row_inputs.sampled_B(traj)
  kind_B = jnp.where(sampled_B.any(), sampled_B, 1.0)
  valid_B = valid_B * kind_B
  kind_N = by_group(kind_B, traj.group_size).max(axis=1)
  reward_NG = by_group(reward_B, traj.group_size)
  valid_NG = by_group(valid_B, traj.group_size)
  high_N = jnp.where(valid_NG > 0, reward_NG, -jnp.inf).max(1)
  low_N = jnp.where(valid_NG > 0, reward_NG, jnp.inf).min(1)
  metrics = {
    'reward/mean': masked_mean(reward_B, valid_B),
    'reward/std': safe_sqrt(masked_var(reward_B, valid_B)),
    'reward/group_std': masked_mean(
      safe_sqrt(masked_var(reward_NG, valid_NG, axis=1, ddof=1)),
      (valid_NG.sum(axis=1) > 1).astype(jnp.float32),
    ),
    'reward/zero_variance_fraction': masked_mean(high_N <= low_N, kind_N),
    'rollout/valid_fraction': (traj.valid_B > 0).mean(),
    'rollout/length': traj.length_B.astype(jnp.float32).mean(),
    'rollout/finished_fraction': traj.finished_B.astype(jnp.float32).mean(),
  }
  for name, component_B in traj.rewards.items():
    metrics[f'reward/{name}'] = masked_mean(component_B, valid_B)
  return metrics
