"""Functionals of the policy's logits that single methods read by token."""

from rl_jax.pieces.statistics.certainty import Certainty as Certainty
from rl_jax.pieces.statistics.chunk import Chunk as Chunk
from rl_jax.pieces.statistics.full_kl import FullKL as FullKL
from rl_jax.pieces.statistics.group_divergence import (
  GroupDivergence as GroupDivergence,
)
from rl_jax.pieces.statistics.group_probs import GroupProbs as GroupProbs
