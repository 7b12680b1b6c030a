"""Values of single tokens from an update, for rollouts.jsonl."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import TOKENS, Array, Metrics, Trajectories

_FRACTION = '_fraction'


def token_fields(traj: Trajectories, metrics: Metrics) -> dict[str, Array]:
  """Returns what is logged of every token, each [B, T]; metrics as pieces
  return them.

  entropy, logp: of the weights that sampled, by the trainer, in nats
  logp_gap: the sampler's log-prob minus the trainer's
  clip, dropped, selected, ...: 1 where a piece counts the token in its
  `policy/*_fraction`; value_clip: in `value/clip_fraction`, and so on
  """
  mask_BT = traj.mask_BT
  fields = {
    'trained': mask_BT * (traj.weight_B > 0)[:, None],
    'entropy': traj.entropy_BT,
    'advantage': traj.advantages_BT,
    'logp': traj.logp_old_BT,
    'logp_gap': traj.logp_behaviour_BT - traj.logp_old_BT,
  }
  for name, value in metrics.items():
    if name.endswith(_FRACTION) and value.shape == mask_BT.shape:
      name = name.removesuffix(_FRACTION).removeprefix('policy/')
      fields[name.replace('/', '_')] = value.astype(jnp.float32)
  return {name: x * mask_BT for name, x in fields.items() if x is not None}


def pick(
  fields: dict[str, Array], traj: Trajectories, group_M: Array, rows: int
) -> dict[str, Array]:
  """The first rows of the batch, [rows, T], from a minibatch of its groups.

  'seen' [rows] is 1 where the row is in this minibatch.
  """
  G = traj.group_size
  groups_K = jnp.arange(-(-rows // G), dtype=group_M.dtype)
  match_KM = groups_K[:, None] == group_M[None]
  place_K = match_KM.argmax(1)

  def take(x: Array):
    groups = x.reshape(-1, G, *x.shape[1:])[place_K]
    return groups.reshape(-1, *x.shape[1:])[:rows]

  seen = jnp.repeat(match_KM.any(1), G)[:rows]
  return {**{n: take(x) for n, x in fields.items()}, 'seen': seen}


def latest(steps: Sequence[dict[str, Array]]) -> dict[str, Array]:
  """Keeps, for each row, what the last step that trained it has measured."""
  found = steps[0]
  for step in steps[1:]:
    new = step['seen']
    found = {
      name: jnp.where(new.reshape(-1, *[1] * (x.ndim - 1)), step[name], x)
      for name, x in found.items()
    }
  return found


def mean_metrics(per_step: Sequence[dict[str, Any]]) -> dict[str, Any]:
  """Means over optimizer steps; of tokens what the last step has found."""
  scalars = [{n: x for n, x in m.items() if n != TOKENS} for m in per_step]
  mean: dict[str, Any] = jax.tree.map(
    lambda *x: jnp.mean(jnp.stack(x)), *scalars
  )
  if TOKENS in per_step[0]:
    mean[TOKENS] = latest([m[TOKENS] for m in per_step])
  return mean
