"""Which prompts are drawn, and which groups are kept."""

from rl_jax.selection.accuracy_band import AccuracyBand
from rl_jax.selection.beta_posterior import BetaPosterior
from rl_jax.selection.shuffled_pass import ShuffledPass
from rl_jax.selection.uniform import Uniform
from rl_jax.selection.zero_variance import ZeroVariance

__all__ = [
  'AccuracyBand',
  'BetaPosterior',
  'ShuffledPass',
  'Uniform',
  'ZeroVariance',
]
