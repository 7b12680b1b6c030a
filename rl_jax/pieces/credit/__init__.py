"""Advantages: rewards [B] -> credit [B] or [B, T], and value targets."""

from rl_jax.pieces.credit.action_gae import ActionGAE as ActionGAE
from rl_jax.pieces.credit.action_gae import ActionReturn as ActionReturn
from rl_jax.pieces.credit.batch_scale import BatchScale as BatchScale
from rl_jax.pieces.credit.batch_scale import NonzeroScale as NonzeroScale
from rl_jax.pieces.credit.best_advantage import BestAdvantage as BestAdvantage
from rl_jax.pieces.credit.best_of_group import BestOfGroup as BestOfGroup
from rl_jax.pieces.credit.bi_level_gae import BiLevelGAE as BiLevelGAE
from rl_jax.pieces.credit.bundle_risk import BundleRisk as BundleRisk
from rl_jax.pieces.credit.candidate_advantage import (
  CandidateAdvantage as CandidateAdvantage,
)
from rl_jax.pieces.credit.clip_advantage import ClipAdvantage as ClipAdvantage
from rl_jax.pieces.credit.component_returns import (
  ComponentReturns as ComponentReturns,
)
from rl_jax.pieces.credit.component_scale import (
  ComponentScale as ComponentScale,
)
from rl_jax.pieces.credit.conservative_target import (
  ConservativeTarget as ConservativeTarget,
)
from rl_jax.pieces.credit.discounted_return import (
  DiscountedReturn as DiscountedReturn,
)
from rl_jax.pieces.credit.duration_weight import (
  DurationWeight as DurationWeight,
)
from rl_jax.pieces.credit.entropy_modulation import (
  EntropyModulation as EntropyModulation,
)
from rl_jax.pieces.credit.entropy_shaping import (
  EntropyShaping as EntropyShaping,
)
from rl_jax.pieces.credit.episode_normalised import (
  EpisodeNormalised as EpisodeNormalised,
)
from rl_jax.pieces.credit.episode_standardised import (
  EpisodeStandardised as EpisodeStandardised,
)
from rl_jax.pieces.credit.extended_gae import ExtendedGAE as ExtendedGAE
from rl_jax.pieces.credit.first_call import FirstCallBias as FirstCallBias
from rl_jax.pieces.credit.gae import GAE as GAE
from rl_jax.pieces.credit.gae import LambdaReturn as LambdaReturn
from rl_jax.pieces.credit.greedy_baseline import (
  GreedyBaseline as GreedyBaseline,
)
from rl_jax.pieces.credit.group import GroupCenter as GroupCenter
from rl_jax.pieces.credit.group import GroupScale as GroupScale
from rl_jax.pieces.credit.group import LeaveOneOut as LeaveOneOut
from rl_jax.pieces.credit.hierarchical_gae import (
  HierarchicalGAE as HierarchicalGAE,
)
from rl_jax.pieces.credit.hierarchical_gae import (
  HierarchicalReturn as HierarchicalReturn,
)
from rl_jax.pieces.credit.implicit_q import (
  ImplicitAdvantage as ImplicitAdvantage,
)
from rl_jax.pieces.credit.implicit_q import ImplicitTargets as ImplicitTargets
from rl_jax.pieces.credit.lagrangian import Lagrangian as Lagrangian
from rl_jax.pieces.credit.length_advantage import (
  LengthAdvantageScale as LengthAdvantageScale,
)
from rl_jax.pieces.credit.length_baseline import (
  LengthWeightedCenter as LengthWeightedCenter,
)
from rl_jax.pieces.credit.long_wrong import LongWrongScale as LongWrongScale
from rl_jax.pieces.credit.max_targets import MaxTargets as MaxTargets
from rl_jax.pieces.credit.negative_token_damping import (
  NegativeTokenDamping as NegativeTokenDamping,
)
from rl_jax.pieces.credit.novelty_sharpening import (
  NoveltySharpening as NoveltySharpening,
)
from rl_jax.pieces.credit.optimal_token_baseline import (
  OptimalTokenBaseline as OptimalTokenBaseline,
)
from rl_jax.pieces.credit.own_component import OwnComponent as OwnComponent
from rl_jax.pieces.credit.pareto_front import ParetoFront as ParetoFront
from rl_jax.pieces.credit.reward_filter import BestFraction as BestFraction
from rl_jax.pieces.credit.reward_filter import RewardAtLeast as RewardAtLeast
from rl_jax.pieces.credit.robust_return import RobustReturn as RobustReturn
from rl_jax.pieces.credit.role_baseline import RoleBaseline as RoleBaseline
from rl_jax.pieces.credit.segment_difference import (
  SegmentDifference as SegmentDifference,
)
from rl_jax.pieces.credit.semantic_entropy import (
  SemanticEntropyScale as SemanticEntropyScale,
)
from rl_jax.pieces.credit.set_gains import SetGains as SetGains
from rl_jax.pieces.credit.shared_steps import SharedSteps as SharedSteps
from rl_jax.pieces.credit.step_groups import StepGroups as StepGroups
from rl_jax.pieces.credit.token_hidden_reward import (
  TokenHiddenReward as TokenHiddenReward,
)
from rl_jax.pieces.credit.tree_difference import (
  TreeDifference as TreeDifference,
)
from rl_jax.pieces.credit.turn_gae import TurnGAE as TurnGAE
from rl_jax.pieces.credit.turn_gae import TurnLambdaReturn as TurnLambdaReturn
from rl_jax.pieces.credit.turn_return import TurnLeaveOneOut as TurnLeaveOneOut
from rl_jax.pieces.credit.turn_return import TurnReturn as TurnReturn
from rl_jax.pieces.credit.twin_critics import TwinAdvantage as TwinAdvantage
from rl_jax.pieces.credit.twin_critics import TwinTargets as TwinTargets
from rl_jax.pieces.credit.whiten import Whiten as Whiten
