"""Metrics of every loss on pairs."""

import jax.numpy as jnp

from rl_jax.pieces.ops.edges import ends, live_weights
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.types import Array, Trajectories


def pair_metrics(
  win_NE: Array, lose_NE: Array, logp_B: Array, traj: Trajectories
) -> dict[str, Array]:
  """Metrics of all losses on pairs, means over the edges that count.

  preference/margin: score of the winner minus that of the loser, in the units
  of the score. preference/accuracy: how often it is above 0; ties are wrong.
  preference/logp_win, logp_lose: summed log-probs of the rows, nats.
  preference/edges: edges that count, per group.
  """
  live_NE = (live_weights(traj) != 0).astype(jnp.float32)
  logp_win_NE, logp_lose_NE = ends(logp_B, traj.edges)
  found = {
    'margin': win_NE - lose_NE,
    'accuracy': (win_NE > lose_NE).astype(jnp.float32),
    'logp_win': logp_win_NE,
    'logp_lose': logp_lose_NE,
  }
  metrics = {
    f'preference/{name}': masked_mean(x, live_NE) for name, x in found.items()
  }
  metrics['preference/edges'] = live_NE.sum() / live_NE.shape[0]
  return metrics
