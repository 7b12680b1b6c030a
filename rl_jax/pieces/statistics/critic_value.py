"""Values by the critic of another policy, as of a slow copy."""

import dataclasses
from typing import Any, ClassVar

from rl_jax.pieces.policies import Frozen


@dataclasses.dataclass(frozen=True)
class CriticValue:
  """Output `head` of the value head of a named policy, [B, T].

  Before each trained token, or after it. The piece that needs it says in
  `policies` what the policy is. Only credit, value targets and pairs can read
  it: `score` computes it from hidden states, without logits.
  """

  policy: str
  head: int = 0
  after: bool = False
  by_place: ClassVar[bool] = False

  @property
  def name(self) -> str:
    """The key of the statistic."""
    place = 'after' if self.after else 'before'
    return f'value_{self.head}_{place}_{self.policy}'

  @property
  def policies(self) -> dict[str, Any]:
    """The policy whose critic is read."""
    return {self.policy: Frozen()}
