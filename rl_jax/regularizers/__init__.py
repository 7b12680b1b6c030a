"""Terms that are added to the policy loss; the signature is that of a loss."""

from rl_jax.regularizers.difficulty_kl import DifficultyKL
from rl_jax.regularizers.entropy_bonus import EntropyBonus
from rl_jax.regularizers.kl_constraint import KLConstraint
from rl_jax.regularizers.kl_penalty import KLPenalty
from rl_jax.regularizers.llds import LLDS

__all__ = [
  'DifficultyKL',
  'EntropyBonus',
  'KLConstraint',
  'KLPenalty',
  'LLDS',
]
