"""Rollouts that are more than G samples of each prompt."""

from rl_jax.rollouts.wrappers.against import Against as Against
from rl_jax.rollouts.wrappers.beside_record import BesideRecord as BesideRecord
from rl_jax.rollouts.wrappers.candidate_steps import (
  CandidateSteps as CandidateSteps,
)
from rl_jax.rollouts.wrappers.critique_refinement import (
  CritiqueRefinement as CritiqueRefinement,
)
from rl_jax.rollouts.wrappers.dataset_reset import DatasetReset as DatasetReset
from rl_jax.rollouts.wrappers.easier_prompts import (
  EasierPrompts as EasierPrompts,
)
from rl_jax.rollouts.wrappers.forced_modes import ForcedModes as ForcedModes
from rl_jax.rollouts.wrappers.greedy_response import (
  GreedyResponse as GreedyResponse,
)
from rl_jax.rollouts.wrappers.guide_roll_in import GuideRollIn as GuideRollIn
from rl_jax.rollouts.wrappers.guided import HintGuided as HintGuided
from rl_jax.rollouts.wrappers.opponent import Opponent as Opponent
from rl_jax.rollouts.wrappers.reflected_clones import (
  ReflectedClones as ReflectedClones,
)
from rl_jax.rollouts.wrappers.rubric_scaffold import (
  RubricScaffold as RubricScaffold,
)
from rl_jax.rollouts.wrappers.segment_tree import SegmentTree as SegmentTree
from rl_jax.rollouts.wrappers.segment_values import (
  SegmentValues as SegmentValues,
)
from rl_jax.rollouts.wrappers.solved_seeds import SolvedSeeds as SolvedSeeds
from rl_jax.rollouts.wrappers.span_critique import SpanCritique as SpanCritique
from rl_jax.rollouts.wrappers.staged_hints import StagedHints as StagedHints
from rl_jax.rollouts.wrappers.step_curiosity import (
  StepCuriosity as StepCuriosity,
)
from rl_jax.rollouts.wrappers.thought_gain import ThoughtGain as ThoughtGain
from rl_jax.rollouts.wrappers.tree_search import TreeSearch as TreeSearch
from rl_jax.rollouts.wrappers.uncertainty_allocation import (
  UncertaintyAllocation as UncertaintyAllocation,
)
from rl_jax.rollouts.wrappers.wall_clock import WallClock as WallClock
