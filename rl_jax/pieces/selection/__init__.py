"""Selectors of prompts, and filters of groups."""

from rl_jax.pieces.selection.accuracy_band import AccuracyBand as AccuracyBand
from rl_jax.pieces.selection.beta_posterior import (
  BetaPosterior as BetaPosterior,
)
from rl_jax.pieces.selection.domain_gap import DomainGap as DomainGap
from rl_jax.pieces.selection.prompt_value import PromptValue as PromptValue
from rl_jax.pieces.selection.shuffled_pass import ShuffledPass as ShuffledPass
from rl_jax.pieces.selection.spread_sampling import (
  SpreadSampling as SpreadSampling,
)
from rl_jax.pieces.selection.staged_levels import StagedLevels as StagedLevels
from rl_jax.pieces.selection.target_difficulty import (
  TargetDifficulty as TargetDifficulty,
)
from rl_jax.pieces.selection.top_spread import TopSpread as TopSpread
from rl_jax.pieces.selection.uniform import Uniform as Uniform
from rl_jax.pieces.selection.zero_variance import ZeroVariance as ZeroVariance
