"""Games against a copy of the policy, in place of the policy itself."""

from typing import Any

from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average, CopyEvery, Frozen
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.types import static


@piece
class Opponent(RolloutWrapper):
  """The other player of each game is a copy of the policy, kept by `rule`.

  CopyEvery(iterations=n): up to n iterations old. Frozen(): the initial one.
  Average(decay=d): a moving average. The policy plays every role; only its own
  rows are trained, so a row costs the sampling of two; evaluations of the run
  are games against the copy, too. Without this piece the policy plays both
  sides, and both are trained.
  Source: fictitious play against past policies, as ablated by "SPIRAL:
  Self-Play on Zero-Sum Games Incentivizes Reasoning via Multi-Agent Multi-Turn
  Reinforcement Learning" (a fixed opponent); the rules are this code's.
  """

  rule: Frozen | CopyEvery | Average = static(default=CopyEvery(iterations=10))
  plays = True

  @property
  def policies(self) -> dict[str, Any]:
    """The name under which episodes find the copy."""
    return {'opponent': self.rule}
