"""Rewards -> rewards: what changes them before the credit."""

from rl_jax.pieces.shaping.adaptive_mode import AdaptiveModeReward
from rl_jax.pieces.shaping.affine import Affine
from rl_jax.pieces.shaping.cluster_frequency import ClusterFrequency
from rl_jax.pieces.shaping.elliptical_bonus import EllipticalBonus
from rl_jax.pieces.shaping.format_rarity import FormatRarity
from rl_jax.pieces.shaping.history_length import HistoryLength
from rl_jax.pieces.shaping.kl_in_reward import KLInReward
from rl_jax.pieces.shaping.overlong import OverlongPenalty
from rl_jax.pieces.shaping.ranked_answers import RankedAnswers
from rl_jax.pieces.shaping.reference_sigmoid import ReferenceSigmoid
from rl_jax.pieces.shaping.running_scale import RunningScale
from rl_jax.pieces.shaping.self_certainty import SelfCertainty

__all__ = [
  'AdaptiveModeReward',
  'Affine',
  'ClusterFrequency',
  'EllipticalBonus',
  'FormatRarity',
  'HistoryLength',
  'KLInReward',
  'OverlongPenalty',
  'RankedAnswers',
  'ReferenceSigmoid',
  'RunningScale',
  'SelfCertainty',
]
