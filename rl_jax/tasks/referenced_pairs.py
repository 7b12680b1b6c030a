"""Responses beside a reference, for models of how much better they are."""

import dataclasses

from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.joined_pairs import JoinedTexts


@dataclasses.dataclass(frozen=True)
class ReferencedPairs(JoinedTexts):
  """A task of pairs (w, l) as four rows 'response separator reference'.

  In this order w beside l, w beside w, l beside l, l beside w, with rewards 2,
  1, 1, 0. --method=reward_model@rankings learns a gap g(x, y, y_ref) of them:
  of the pairs of unequal rewards, which are five, the loss is the mean, where
  PIT adds -log sigmoid of these differences up. As a reward it is
  Judge(reads='value', template='{prompt}{response}SEPARATOR{answer}') with the
  reference as the answer of the data, which the policy sees in its prompt.
  Everything else is that of the task.
  Source: PIT, "Enable Language Models to Implicitly Learn Self-Improvement From
  Data", 2023; reconstructed.
  """

  num_logged = 4

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The four rows."""
    chosen, rejected = self.pair(example)
    w, l = chosen.text, rejected.text  # noqa: E741
    pairs = ((w, l, 2.0), (w, w, 1.0), (l, l, 1.0), (l, w, 0.0))
    return tuple(
      Logged(text=self.separator.join((own, reference)), reward=reward)
      for own, reference, reward in pairs
    )
