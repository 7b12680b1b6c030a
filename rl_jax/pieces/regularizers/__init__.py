"""Terms that are added to the policy loss; the signature is that of a loss."""

from rl_jax.pieces.regularizers.difficulty_kl import DifficultyKL
from rl_jax.pieces.regularizers.entropy_bonus import EntropyBonus
from rl_jax.pieces.regularizers.kl_constraint import KLConstraint
from rl_jax.pieces.regularizers.kl_penalty import KLPenalty
from rl_jax.pieces.regularizers.llds import LLDS

__all__ = [
  'DifficultyKL',
  'EntropyBonus',
  'KLConstraint',
  'KLPenalty',
  'LLDS',
]
