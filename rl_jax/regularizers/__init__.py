"""Terms that are added to the policy loss; the signature is that of a loss."""

from rl_jax.regularizers.entropy_bonus import EntropyBonus
from rl_jax.regularizers.kl_penalty import KLPenalty

__all__ = ['EntropyBonus', 'KLPenalty']
