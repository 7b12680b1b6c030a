"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.weights.clip_cov import ClipCovDrop
from rl_jax.weights.entropy_quantile import EntropyQuantile
from rl_jax.weights.icepop import IcePop
from rl_jax.weights.sequence_mask import SequenceMask
from rl_jax.weights.truncated_importance import TruncatedImportance

__all__ = [
  'ClipCovDrop',
  'EntropyQuantile',
  'IcePop',
  'SequenceMask',
  'TruncatedImportance',
]
