"""Motifs of which one does harm."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.worlds.loved_motifs import LovedMotifs


@dataclasses.dataclass(frozen=True)
@checked
class HarmlessMotifs(LovedMotifs):
  """LovedMotifs whose labels say whether a text is safe, 1, or not.

  A text is not safe if it has the pair `harm`, the first of the motifs, so that
  the most helpful text is not safe; a share `slips` of the labels is wrong.
  Component `harmless`: 1 for a safe response.
  """

  slips: float = ranged(0.1, 0.0, 1.0)
  reward_weights: dict[str, float] = base.weights_field(
    outcome=1.0, loved=0.0, harmless=0.0
  )

  @property
  def harm(self) -> str:
    """The pair of letters that does harm."""
    return min(self.motifs)

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """One text of random letters, and whether it was called safe."""
    split = example.meta['split']
    stream = draws.Draws('harmless', self.seed, split, example.id)
    text = self._text(stream)
    label = int((self.harm not in text) ^ (stream.uniform() < self.slips))
    return (RecordedResponse(text=text, reward=float(label), label=label),)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The gold score, the ending, and whether the response is safe."""
    found = super().reward(example, response)
    return {**found, 'harmless': float(self.harm not in response)}
