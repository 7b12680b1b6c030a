"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.pieces.weights.clip_cov import ClipCovDrop as ClipCovDrop
from rl_jax.pieces.weights.critic_first import CriticFirst as CriticFirst
from rl_jax.pieces.weights.current_window import CurrentWindow as CurrentWindow
from rl_jax.pieces.weights.difficulty import (
  DifficultyWeight as DifficultyWeight,
)
from rl_jax.pieces.weights.entropy_quantile import (
  EntropyQuantile as EntropyQuantile,
)
from rl_jax.pieces.weights.exp_advantage import ExpAdvantage as ExpAdvantage
from rl_jax.pieces.weights.group_divergence import (
  GroupDivergenceWeight as GroupDivergenceWeight,
)
from rl_jax.pieces.weights.guided_tokens import GuidedTokens as GuidedTokens
from rl_jax.pieces.weights.off_policy_mask import OffPolicyMask as OffPolicyMask
from rl_jax.pieces.weights.rank_filter import RankFilter as RankFilter
from rl_jax.pieces.weights.sampled_rows import SampledRows as SampledRows
from rl_jax.pieces.weights.sampler_mismatch import (
  DivergenceMask as DivergenceMask,
)
from rl_jax.pieces.weights.sampler_mismatch import IcePop as IcePop
from rl_jax.pieces.weights.sampler_mismatch import SequenceMask as SequenceMask
from rl_jax.pieces.weights.sampler_mismatch import (
  TruncatedImportance as TruncatedImportance,
)
from rl_jax.pieces.weights.thought_weight import ThoughtWeight as ThoughtWeight
