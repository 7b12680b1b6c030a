"""Concatenates rounds of trajectories and selects groups from them."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from rl_jax import checks
from rl_jax.types import Trajectories


def _same_fields(traj: Trajectories, width: int, names: list) -> Trajectories:
  """Pads prompts to a common width and adds missing reward components."""
  more = width - traj.prompt_NP.shape[1]

  def pad(x):
    return jnp.pad(x, ((0, 0), (more, 0)))

  # Rows that are not judged yet have no rewards, and nothing is missing then.
  missing = [name for name in names if name not in traj.rewards]
  zeros = {name: jnp.zeros_like(traj.reward_B) for name in missing}
  return traj.replace(
    prompt_NP=pad(traj.prompt_NP),
    prompt_mask_NP=pad(traj.prompt_mask_NP),
    rewards={**traj.rewards, **zeros},
  )


def alike(*trajs: Trajectories) -> list[Trajectories]:
  """Rounds with equal fields, and equal shapes but for the number of groups."""
  # Prompt widths are bucketed, so rounds may differ.
  width = max(t.prompt_NP.shape[1] for t in trajs)
  names = sorted({name for t in trajs for name in t.rewards})
  return [_same_fields(t, width, names) for t in trajs]


def laid_end_to_end(trajs: Sequence[Trajectories]) -> Trajectories:
  """All groups of rows with equal fields and widths."""
  return jax.tree.map(lambda *xs: jnp.concatenate(xs), *trajs)


def join_rounds(trajs: Sequence[Trajectories]) -> Trajectories:
  """Concatenates all groups of several rounds."""
  return laid_end_to_end(alike(*trajs))


def take_from_rounds(
  trajs: Sequence[Trajectories], group_N: jax.Array
) -> Trajectories:
  """Selects groups from several concatenated rounds."""
  num_prompts = trajs[0].num_prompts

  def take(*xs):
    x = jnp.concatenate(xs)
    rows = xs[0].shape[0] // num_prompts
    groups = x.reshape(num_prompts * len(xs), rows, *x.shape[1:])
    return groups[group_N].reshape(-1, *x.shape[1:])

  return jax.tree.map(take, *alike(*trajs))


def join_chunks(
  first: Trajectories,
  more: tuple[Trajectories, ...],
  place_NM: jax.Array,
  foreign_NM: jax.Array | None = None,
) -> Trajectories:
  """Groups of the G rows of `first` and those of M chunks, or of no chunk.

  place_NM: the groups of `more`, concatenated, that are the chunks of each
  prompt; below 0: none, and G rows that are invalid and weigh nothing.
  foreign_NM: 1 for chunks that were sampled under another prompt, which the
  rows say as 'foreign_B'; None: there are none, and no such entry.
  """
  (N, M), G = place_NM.shape, first.group_size
  every = join_rounds((first, *more))
  chunk_NM = jnp.where(place_NM < 0, 0, place_NM + N)
  own_N1 = jnp.arange(N, dtype=chunk_NM.dtype)[:, None]
  chunk_NM = jnp.concatenate([own_N1, chunk_NM], axis=1)
  there_NM = jnp.pad(place_NM >= 0, ((0, 0), (1, 0)), constant_values=True)
  row_G = jnp.arange(G, dtype=chunk_NM.dtype)
  row_B = (chunk_NM[..., None] * G + row_G[None, None]).reshape(-1)
  live_B = jnp.repeat(there_NM.reshape(-1).astype(jnp.float32), G)
  of_prompts = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')
  rows = every.replace(**dict.fromkeys(of_prompts))
  rows = jax.tree.map(lambda x: x[row_B], rows)
  extras = dict(rows.extras)
  if foreign_NM is not None:
    foreign_NM = jnp.pad(foreign_NM, ((0, 0), (1, 0)))
    extras['foreign_B'] = jnp.repeat(foreign_NM.reshape(-1), G)
  return rows.replace(
    **checks.values(first, of_prompts),
    extras=extras,
    group_size=G * (1 + M),
    mask_BT=rows.mask_BT * live_B[:, None],
    logp_behaviour_BT=rows.logp_behaviour_BT * live_B[:, None],
    valid_B=rows.valid_B * live_B,
    weight_B=rows.weight_B * live_B,
  )
