"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.pieces.weights.clip_cov import ClipCovDrop
from rl_jax.pieces.weights.current_window import CurrentWindow
from rl_jax.pieces.weights.difficulty import DifficultyWeight
from rl_jax.pieces.weights.entropy_quantile import EntropyQuantile
from rl_jax.pieces.weights.group_divergence import GroupDivergenceWeight
from rl_jax.pieces.weights.icepop import IcePop
from rl_jax.pieces.weights.rank_filter import RankFilter
from rl_jax.pieces.weights.sequence_mask import SequenceMask
from rl_jax.pieces.weights.truncated_importance import TruncatedImportance

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
