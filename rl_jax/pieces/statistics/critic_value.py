"""Values by the critic of another policy, as of a slow copy."""

from typing import Any

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import Statistic, statistic


@statistic
class CriticValue(Statistic):
  """Output `head` of the value head of a named policy, [B, T].

  Before each trained token, or after it. The piece that needs it says in
  `policies` what the policy is. Only credit, value targets and pairs can read
  it: `score` computes it from hidden states, without logits.
  """

  policy: str
  head: int = 0
  after: bool = False

  @property
  def name(self) -> str:
    """The key of the statistic."""
    place = 'after' if self.after else 'before'
    return f'value_{self.head}_{place}_{self.policy}'

  @property
  def policies(self) -> dict[str, Any]:
    """The policy whose critic is read."""
    return {self.policy: Frozen()}
