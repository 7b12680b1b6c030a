"""Maximum likelihood of given tokens: supervised training as a method."""

from typing import Any, ClassVar

from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class NegativeLogLikelihood:
  """l_t = -logp_t on every trained token.

  REINFORCE with advantage 1 on given tokens; the mask selects them. The metric
  is the mean over trained tokens, in nats.
  """

  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'policy'
  per_token: ClassVar[bool] = True
  from_data: ClassVar[bool] = True
  imitates: ClassVar[bool] = True  # every response, whatever its label

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del traj, key
    return -stats['logp'], {'train/nll': -stats['logp']}
