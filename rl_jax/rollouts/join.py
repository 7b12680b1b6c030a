"""Rounds of trajectories laid end to end, and groups picked out of them."""

import jax
import jax.numpy as jnp

from rl_jax.types import Trajectories


def _same_fields(traj: Trajectories, width: int, names: list) -> Trajectories:
  """Pads prompts to a common width and adds missing reward components."""
  more = width - traj.prompt_NP.shape[1]
  pad = lambda x: jnp.pad(x, ((0, 0), (more, 0)))
  zeros = jnp.zeros_like(traj.reward_B)
  return traj.replace(
    prompt_NP=pad(traj.prompt_NP),
    prompt_mask_NP=pad(traj.prompt_mask_NP),
    rewards={name: traj.rewards.get(name, zeros) for name in names},
  )


def _alike(trajs: tuple) -> list[Trajectories]:
  """Rounds with equal shapes but for the number of groups."""
  # Prompt widths are bucketed, so rounds may differ.
  width = max(t.prompt_NP.shape[1] for t in trajs)
  names = sorted({name for t in trajs for name in t.rewards})
  return [_same_fields(t, width, names) for t in trajs]


def join_rounds(trajs: tuple) -> Trajectories:
  """All groups of several rounds laid end to end."""
  return jax.tree.map(lambda *xs: jnp.concatenate(xs), *_alike(trajs))


def take_from_rounds(trajs: tuple, group_N: jax.Array) -> Trajectories:
  """Groups picked out of several rounds laid end to end."""
  num_prompts, trajs = trajs[0].num_prompts, _alike(trajs)

  def take(*xs):
    x = jnp.concatenate(xs)
    rows = xs[0].shape[0] // num_prompts
    groups = x.reshape(num_prompts * len(xs), rows, *x.shape[1:])
    return groups[group_N].reshape(-1, *x.shape[1:])

  return jax.tree.map(take, *trajs)
