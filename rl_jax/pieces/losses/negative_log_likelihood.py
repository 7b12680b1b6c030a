"""Maximum likelihood of given tokens: supervised training as a method."""

from typing import Any

from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class NegativeLogLikelihood(Loss):
  """l_t = -logp_t on every trained token.

  REINFORCE with advantage 1 on given tokens; the mask selects them. The metric
  is the mean over trained tokens, in nats.
  """

  aggregation: Any = None  # overrides the method's
  per_token = True
  from_data = True
  imitates = True  # every response, whatever its label

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats = ctx.stats
    return LossOut(-stats['logp'], {'train/nll': -stats['logp']})
