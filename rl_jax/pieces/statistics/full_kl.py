"""The exact divergence from another policy, over the whole vocabulary."""

import jax
import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class FullKL(Statistic):
  """sum_v pi(v) (log pi(v) - log pi_ref(v)), in nats, [B, T].

  Instead of an estimate from the drawn token: no variance given the prefix, and
  its gradient is that of KL(pi || ref) at every place. Costs a forward pass of
  the reference in every update. Tokens of probability 0 count nothing.
  """

  name = 'full_kl'
  policies = {'reference': Frozen()}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    logp_BCV = chunk.logp_BCV
    other_BCV = jax.nn.log_softmax(chunk.others['reference'], axis=-1)
    p_BCV = jnp.exp(logp_BCV)
    # p log p -> 0 as p -> 0, also where a transform put -inf.
    gap_BCV = jnp.where(p_BCV > 0, logp_BCV - other_BCV, 0.0)
    return (p_BCV * gap_BCV).sum(axis=-1)
