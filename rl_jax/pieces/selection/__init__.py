"""Which prompts are drawn, and which groups are kept."""

from rl_jax.pieces.selection.accuracy_band import AccuracyBand
from rl_jax.pieces.selection.beta_posterior import BetaPosterior
from rl_jax.pieces.selection.shuffled_pass import ShuffledPass
from rl_jax.pieces.selection.uniform import Uniform
from rl_jax.pieces.selection.zero_variance import ZeroVariance

__all__ = [
  'AccuracyBand',
  'BetaPosterior',
  'ShuffledPass',
  'Uniform',
  'ZeroVariance',
]
