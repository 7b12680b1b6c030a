"""Advantages: rewards [B] -> credit [B] or [B, T], and value targets."""

from rl_jax.pieces.credit.action_gae import ActionGAE, ActionReturn
from rl_jax.pieces.credit.batch_scale import BatchScale, NonzeroScale
from rl_jax.pieces.credit.best_of_group import BestOfGroup
from rl_jax.pieces.credit.bundle_risk import BundleRisk
from rl_jax.pieces.credit.discounted_return import DiscountedReturn
from rl_jax.pieces.credit.entropy_modulation import EntropyModulation
from rl_jax.pieces.credit.entropy_shaping import EntropyShaping
from rl_jax.pieces.credit.extended_gae import ExtendedGAE
from rl_jax.pieces.credit.first_call import FirstCallBias
from rl_jax.pieces.credit.gae import GAE, LambdaReturn
from rl_jax.pieces.credit.group import GroupCenter, GroupScale, LeaveOneOut
from rl_jax.pieces.credit.lagrangian import Lagrangian
from rl_jax.pieces.credit.length_advantage import LengthAdvantageScale
from rl_jax.pieces.credit.length_baseline import LengthWeightedCenter
from rl_jax.pieces.credit.long_wrong import LongWrongScale
from rl_jax.pieces.credit.negative_token_damping import NegativeTokenDamping
from rl_jax.pieces.credit.novelty_sharpening import NoveltySharpening
from rl_jax.pieces.credit.segment_difference import SegmentDifference
from rl_jax.pieces.credit.semantic_entropy import SemanticEntropyScale
from rl_jax.pieces.credit.set_gains import SetGains
from rl_jax.pieces.credit.token_hidden_reward import TokenHiddenReward
from rl_jax.pieces.credit.whiten import Whiten

__all__ = [
  'ActionGAE',
  'ActionReturn',
  'BatchScale',
  'BestOfGroup',
  'BundleRisk',
  'DiscountedReturn',
  'EntropyModulation',
  'EntropyShaping',
  'ExtendedGAE',
  'FirstCallBias',
  'GAE',
  'GroupCenter',
  'GroupScale',
  'Lagrangian',
  'LambdaReturn',
  'LeaveOneOut',
  'LengthAdvantageScale',
  'LengthWeightedCenter',
  'LongWrongScale',
  'NegativeTokenDamping',
  'NonzeroScale',
  'NoveltySharpening',
  'SegmentDifference',
  'SemanticEntropyScale',
  'SetGains',
  'TokenHiddenReward',
  'Whiten',
]
