"""Terms that are added to the policy loss: LossContext -> LossOut."""

from rl_jax.pieces.regularizers.adaptive_kl import AdaptiveKL as AdaptiveKL
from rl_jax.pieces.regularizers.conservative_q import (
  ConservativeQ as ConservativeQ,
)
from rl_jax.pieces.regularizers.contrastive_goal import (
  ContrastiveGoal as ContrastiveGoal,
)
from rl_jax.pieces.regularizers.corrected_kl import CorrectedKL as CorrectedKL
from rl_jax.pieces.regularizers.difficulty_kl import (
  DifficultyKL as DifficultyKL,
)
from rl_jax.pieces.regularizers.entropy_bonus import (
  EntropyBonus as EntropyBonus,
)
from rl_jax.pieces.regularizers.entropy_target import (
  EntropyTarget as EntropyTarget,
)
from rl_jax.pieces.regularizers.exact_kl import ExactKL as ExactKL
from rl_jax.pieces.regularizers.kl_constraint import (
  KLConstraint as KLConstraint,
)
from rl_jax.pieces.regularizers.kl_penalty import KLPenalty as KLPenalty
from rl_jax.pieces.regularizers.llds import LLDS as LLDS
from rl_jax.pieces.regularizers.observation_loss import (
  ObservationLoss as ObservationLoss,
)
from rl_jax.pieces.regularizers.pretraining_loss import (
  PretrainingLoss as PretrainingLoss,
)
from rl_jax.pieces.regularizers.router_balance import (
  RouterBalance as RouterBalance,
)
