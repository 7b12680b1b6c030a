"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.weights.clip_cov import ClipCovDrop
from rl_jax.weights.current_window import CurrentWindow
from rl_jax.weights.difficulty import DifficultyWeight
from rl_jax.weights.entropy_quantile import EntropyQuantile
from rl_jax.weights.group_divergence import GroupDivergenceWeight
from rl_jax.weights.icepop import IcePop
from rl_jax.weights.rank_filter import RankFilter
from rl_jax.weights.sequence_mask import SequenceMask
from rl_jax.weights.truncated_importance import TruncatedImportance

__all__ = [
  'ClipCovDrop',
  'CurrentWindow',
  'DifficultyWeight',
  'EntropyQuantile',
  'GroupDivergenceWeight',
  'IcePop',
  'RankFilter',
  'SequenceMask',
  'TruncatedImportance',
]
