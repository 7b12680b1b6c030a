"""Sem-DPO's weight: chosen responses far from their prompt count less."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.edges import ends
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import EdgeWeight, LossContext
from rl_jax.types import Array


@piece
class SemanticConsistency(EdgeWeight):
  """w = exp(-decay d_win), d = 1 - cos(e(prompt), e(response)).

  e is a frozen embedder of texts; d is computed once, offline, and is a field
  of the data (`semantic_distance`, see tasks.PreferenceRows). Weights are not
  renormalised: larger distances lower the effective learning rate. decay 0 is
  DPO. Source: "Sem-DPO: Mitigating Semantic Inconsistency in Preference
  Optimization for Prompt Engineering" (the formula by two secondary sources
  that agree; its decay is unverified).
  """

  decay: float = ranged(2.0, 0.0)  # per unit of cosine distance
  reads = {
    'semantic_distance_B': (
      '1 - cos of the embeddings of prompt and response, of chosen rows; '
      'filled by data with the field semantic_distance'
    )
  }

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    traj = ctx.traj
    ((key, text),) = self.reads.items()
    distance_B = row_inputs.read(traj, key, text)
    win_NE, _ = ends(distance_B, traj.edges)
    return jnp.exp(-self.decay * win_NE)
