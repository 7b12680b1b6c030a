"""Chains of rules with recorded groups: equivalent right ones, wrong ones."""

import dataclasses

from rl_jax.checks import checked
from rl_jax.tasks import draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.worlds import family_chains
from rl_jax.worlds.family_chains import FamilyChains


@dataclasses.dataclass(frozen=True)
@checked
class EquivalentChains(FamilyChains):
  """FamilyChains whose data have four responses to a prompt.

  '413;524>524' and '413;524?524>524' are right and mean the same: reward 1. A
  chain whose last step has one wrong digit, without and with a check that
  repeats it, is wrong: reward 0. `target` is the teacher's.
  """

  num_recorded = 4

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """Two equivalent right responses, and two wrong ones."""
    right = family_chains.solution(example.prompt)
    stream = draws.Draws('equivalent chains', self.seed, example.prompt)
    wrong = [*right[:-1], family_chains.slip(right[-1], stream)]
    return tuple(
      RecordedResponse(
        text=f'{";".join(steps)}{check}>{steps[-1]}', reward=reward
      )
      for steps, reward in ((right, 1.0), (wrong, 0.0))
      for check in ('', f'?{steps[-1]}')
    )
