"""Comparisons of responses: who is compared, and the losses on the outcome."""

from rl_jax.pieces.preferences.absolute_links import APODown as APODown
from rl_jax.pieces.preferences.absolute_links import APOZero as APOZero
from rl_jax.pieces.preferences.absolute_links import BCOPair as BCOPair
from rl_jax.pieces.preferences.absolute_links import NCA as NCA
from rl_jax.pieces.preferences.all_pairs import (
  AgainstOpponent as AgainstOpponent,
)
from rl_jax.pieces.preferences.all_pairs import AllPairs as AllPairs
from rl_jax.pieces.preferences.all_pairs import GivenMargin as GivenMargin
from rl_jax.pieces.preferences.all_pairs import RecordWins as RecordWins
from rl_jax.pieces.preferences.all_pairs import RecordedPairs as RecordedPairs
from rl_jax.pieces.preferences.annotator_mixture import (
  AnnotatorMixture as AnnotatorMixture,
)
from rl_jax.pieces.preferences.bco import BCO as BCO
from rl_jax.pieces.preferences.centered_scores import (
  CenteredScores as CenteredScores,
)
from rl_jax.pieces.preferences.chosen_likelihood import (
  ChosenLikelihood as ChosenLikelihood,
)
from rl_jax.pieces.preferences.decayed_ratio import DecayedRatio as DecayedRatio
from rl_jax.pieces.preferences.differential_information import (
  DifferentialInformation as DifferentialInformation,
)
from rl_jax.pieces.preferences.edge_weights import Confidence as Confidence
from rl_jax.pieces.preferences.edge_weights import Importance as Importance
from rl_jax.pieces.preferences.edge_weights import OnPolicy as OnPolicy
from rl_jax.pieces.preferences.edge_weights import RewardGap as RewardGap
from rl_jax.pieces.preferences.feature_contrast import (
  FeatureContrast as FeatureContrast,
)
from rl_jax.pieces.preferences.final_value import FinalValue as FinalValue
from rl_jax.pieces.preferences.group_contrast import (
  GroupContrast as GroupContrast,
)
from rl_jax.pieces.preferences.implicit_reward_fit import (
  ImplicitRewardFit as ImplicitRewardFit,
)
from rl_jax.pieces.preferences.kto import KTO as KTO
from rl_jax.pieces.preferences.label_links import EXO as EXO
from rl_jax.pieces.preferences.label_links import Robust as Robust
from rl_jax.pieces.preferences.label_links import SoftTarget as SoftTarget
from rl_jax.pieces.preferences.likelihood_scores import LogOdds as LogOdds
from rl_jax.pieces.preferences.likelihood_scores import MeanLogp as MeanLogp
from rl_jax.pieces.preferences.likelihood_scores import SumLogp as SumLogp
from rl_jax.pieces.preferences.logistic_links import AnchorSign as AnchorSign
from rl_jax.pieces.preferences.logistic_links import DiscoPOP as DiscoPOP
from rl_jax.pieces.preferences.logistic_links import Positive as Positive
from rl_jax.pieces.preferences.logistic_links import Sigmoid as Sigmoid
from rl_jax.pieces.preferences.optimism import Optimism as Optimism
from rl_jax.pieces.preferences.outcome_then_process import (
  OutcomeThenProcess as OutcomeThenProcess,
)
from rl_jax.pieces.preferences.pair_loss import PairLoss as PairLoss
from rl_jax.pieces.preferences.ranked_pairs import Adjacent as Adjacent
from rl_jax.pieces.preferences.ranked_pairs import BestWorst as BestWorst
from rl_jax.pieces.preferences.reference_scores import (
  CommonLengthRatio as CommonLengthRatio,
)
from rl_jax.pieces.preferences.reference_scores import (
  DivergenceRatio as DivergenceRatio,
)
from rl_jax.pieces.preferences.reference_scores import LogRatio as LogRatio
from rl_jax.pieces.preferences.rejection import Rejection as Rejection
from rl_jax.pieces.preferences.sample_spread import SampleSpread as SampleSpread
from rl_jax.pieces.preferences.sampled_kl import SampledKL as SampledKL
from rl_jax.pieces.preferences.search_pairs import (
  ConfidentSigmoid as ConfidentSigmoid,
)
from rl_jax.pieces.preferences.search_pairs import SearchPairs as SearchPairs
from rl_jax.pieces.preferences.semantic_weight import (
  SemanticConsistency as SemanticConsistency,
)
from rl_jax.pieces.preferences.sorted_pairs import SortedPairs as SortedPairs
from rl_jax.pieces.preferences.strength_order import (
  StrengthOrder as StrengthOrder,
)
from rl_jax.pieces.preferences.target_links import Hinge as Hinge
from rl_jax.pieces.preferences.target_links import PairTargets as PairTargets
from rl_jax.pieces.preferences.target_links import Square as Square
from rl_jax.pieces.preferences.target_links import SquareOfGap as SquareOfGap
from rl_jax.pieces.preferences.target_links import Targets as Targets
from rl_jax.pieces.preferences.tree_siblings import TreeSiblings as TreeSiblings
from rl_jax.pieces.preferences.win_rate_regression import (
  WinRateRegression as WinRateRegression,
)
