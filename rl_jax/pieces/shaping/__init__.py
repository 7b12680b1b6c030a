"""Rewards -> rewards: what changes them before the credit."""

from rl_jax.pieces.shaping.adaptive_kl_in_reward import (
  AdaptiveKLInReward as AdaptiveKLInReward,
)
from rl_jax.pieces.shaping.adaptive_mode import (
  AdaptiveModeReward as AdaptiveModeReward,
)
from rl_jax.pieces.shaping.affine import Affine as Affine
from rl_jax.pieces.shaping.cluster_frequency import (
  ClusterFrequency as ClusterFrequency,
)
from rl_jax.pieces.shaping.cobb_douglas import CobbDouglas as CobbDouglas
from rl_jax.pieces.shaping.cost_reward import CostReward as CostReward
from rl_jax.pieces.shaping.elliptical_bonus import (
  EllipticalBonus as EllipticalBonus,
)
from rl_jax.pieces.shaping.ensemble import Ensemble as Ensemble
from rl_jax.pieces.shaping.exponential import Exponential as Exponential
from rl_jax.pieces.shaping.feedback_reward import (
  FeedbackReward as FeedbackReward,
)
from rl_jax.pieces.shaping.format_rarity import FormatRarity as FormatRarity
from rl_jax.pieces.shaping.gated_sum import GatedSum as GatedSum
from rl_jax.pieces.shaping.history_length import HistoryLength as HistoryLength
from rl_jax.pieces.shaping.implicit_reward import (
  ImplicitReward as ImplicitReward,
)
from rl_jax.pieces.shaping.information_gain import (
  InformationGain as InformationGain,
)
from rl_jax.pieces.shaping.kl_in_reward import KLInReward as KLInReward
from rl_jax.pieces.shaping.matched_overlap_stages import (
  MatchedOverlapStages as MatchedOverlapStages,
)
from rl_jax.pieces.shaping.mode_rewards import ModeRewards as ModeRewards
from rl_jax.pieces.shaping.non_stop import NonStop as NonStop
from rl_jax.pieces.shaping.overlap_stages import OverlapStages as OverlapStages
from rl_jax.pieces.shaping.overlong import OverlongPenalty as OverlongPenalty
from rl_jax.pieces.shaping.queue_win_rate import QueueWinRate as QueueWinRate
from rl_jax.pieces.shaping.ranked_answers import RankedAnswers as RankedAnswers
from rl_jax.pieces.shaping.reference_sigmoid import (
  ReferenceSigmoid as ReferenceSigmoid,
)
from rl_jax.pieces.shaping.running_scale import RunningScale as RunningScale
from rl_jax.pieces.shaping.scheduled_sum import ScheduledSum as ScheduledSum
from rl_jax.pieces.shaping.self_certainty import SelfCertainty as SelfCertainty
from rl_jax.pieces.shaping.span_rewards import SpanRewards as SpanRewards
from rl_jax.pieces.shaping.step_scores import StepScores as StepScores
from rl_jax.pieces.shaping.tool_cost import ToolCost as ToolCost
from rl_jax.pieces.shaping.turn_rewards import TurnRewards as TurnRewards
from rl_jax.pieces.shaping.win_rate import WinRate as WinRate
from rl_jax.pieces.shaping.worst_component import (
  WorstComponent as WorstComponent,
)
