"""Functionals of the policy's logits that single methods read by token."""

from rl_jax.pieces.statistics.action_probs import ActionProbs as ActionProbs
from rl_jax.pieces.statistics.action_values import (
  ActionNormalisers as ActionNormalisers,
)
from rl_jax.pieces.statistics.action_values import ActionValues as ActionValues
from rl_jax.pieces.statistics.action_values import (
  BestActionValue as BestActionValue,
)
from rl_jax.pieces.statistics.certainty import Certainty as Certainty
from rl_jax.pieces.statistics.chunk import Chunk as Chunk
from rl_jax.pieces.statistics.collision import Collision as Collision
from rl_jax.pieces.statistics.critic_value import CriticValue as CriticValue
from rl_jax.pieces.statistics.full_kl import FullKL as FullKL
from rl_jax.pieces.statistics.greedy_gap import GreedyGap as GreedyGap
from rl_jax.pieces.statistics.group_divergence import (
  GroupDivergence as GroupDivergence,
)
from rl_jax.pieces.statistics.group_probs import GroupProbs as GroupProbs
from rl_jax.pieces.statistics.log_normaliser import (
  LogNormaliser as LogNormaliser,
)
from rl_jax.pieces.statistics.observation_logp import (
  ObservationLogp as ObservationLogp,
)
from rl_jax.pieces.statistics.policy_logp import PolicyLogp as PolicyLogp
