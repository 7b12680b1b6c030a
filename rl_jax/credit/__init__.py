"""Reward shaping and advantages: one chain, outcome reward to [B, T] credit."""

from rl_jax.credit.action_gae import ActionGAE, ActionReturn
from rl_jax.credit.adaptive_mode import AdaptiveModeReward
from rl_jax.credit.affine import Affine
from rl_jax.credit.batch_scale import BatchScale, NonzeroScale
from rl_jax.credit.best_of_group import BestOfGroup
from rl_jax.credit.bundle_risk import BundleRisk
from rl_jax.credit.cluster_frequency import ClusterFrequency
from rl_jax.credit.discounted_return import DiscountedReturn
from rl_jax.credit.elliptical_bonus import EllipticalBonus
from rl_jax.credit.entropy_modulation import EntropyModulation
from rl_jax.credit.entropy_shaping import EntropyShaping
from rl_jax.credit.extended_gae import ExtendedGAE
from rl_jax.credit.first_call import FirstCallBias
from rl_jax.credit.format_rarity import FormatRarity
from rl_jax.credit.gae import GAE, LambdaReturn
from rl_jax.credit.group import GroupCenter, GroupScale, LeaveOneOut
from rl_jax.credit.history_length import HistoryLength
from rl_jax.credit.kl_in_reward import KLInReward
from rl_jax.credit.lagrangian import Lagrangian
from rl_jax.credit.length_advantage import LengthAdvantageScale
from rl_jax.credit.length_baseline import LengthWeightedCenter
from rl_jax.credit.long_wrong import LongWrongScale
from rl_jax.credit.negative_token_damping import NegativeTokenDamping
from rl_jax.credit.novelty_sharpening import NoveltySharpening
from rl_jax.credit.overlong import OverlongPenalty
from rl_jax.credit.ranked_answers import RankedAnswers
from rl_jax.credit.reference_sigmoid import ReferenceSigmoid
from rl_jax.credit.running_scale import RunningScale
from rl_jax.credit.segment_difference import SegmentDifference
from rl_jax.credit.self_certainty import SelfCertainty
from rl_jax.credit.semantic_entropy import SemanticEntropyScale
from rl_jax.credit.set_gains import SetGains
from rl_jax.credit.token_hidden_reward import TokenHiddenReward
from rl_jax.credit.whiten import Whiten

__all__ = [
  'ActionGAE',
  'ActionReturn',
  'AdaptiveModeReward',
  'Affine',
  'BatchScale',
  'BestOfGroup',
  'BundleRisk',
  'ClusterFrequency',
  'DiscountedReturn',
  'EllipticalBonus',
  'EntropyModulation',
  'EntropyShaping',
  'ExtendedGAE',
  'FirstCallBias',
  'FormatRarity',
  'GAE',
  'GroupCenter',
  'GroupScale',
  'HistoryLength',
  'KLInReward',
  'Lagrangian',
  'LambdaReturn',
  'LeaveOneOut',
  'LengthAdvantageScale',
  'LengthWeightedCenter',
  'LongWrongScale',
  'NegativeTokenDamping',
  'NonzeroScale',
  'NoveltySharpening',
  'OverlongPenalty',
  'RankedAnswers',
  'ReferenceSigmoid',
  'RunningScale',
  'SegmentDifference',
  'SelfCertainty',
  'SemanticEntropyScale',
  'SetGains',
  'TokenHiddenReward',
  'Whiten',
]
