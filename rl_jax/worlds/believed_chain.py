"""Chain by a teacher that believes wrong results; every step is judged."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.worlds.chain import Chain, apply


@dataclasses.dataclass(frozen=True)
@checked
class BelievedChain(Chain):
  """Chain that counts only with all steps right, from a teacher with beliefs.

  A fact is a step as '7*2=4'. Of each of the 300 facts the teacher knows two
  results: the right one, which it writes with probability u^doubt, u uniform in
  [0, 1) and fixed for the fact, and a wrong one, which it writes otherwise. So
  a warm start on its targets prefers wrong results of most facts, has the right
  ones of some below a hundredth, and solves a problem of n operations with
  probability (1 + doubt)^-n on average. Right results must be found by
  sampling; what is learned of a fact holds in every problem, held-out ones too.

  Components as those of Chain, but `outcome` and `hit_rank` are 1 only if the
  expression's steps are there, equal, at their places, besides the right digit:
  a guess earns nothing.
  """

  doubt: float = ranged(3.0, 0.0)

  def belief(self, left: int, operation: str, right: int) -> tuple[float, int]:
    """(probability of the right result, the wrong one)."""
    return _belief(self.seed, self.doubt, left, operation, right)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Prefill and the text before the end token are judged."""
    return _proved(super().reward(example, response))

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    return _proved(
      super().reward_device(
        response_BT, length_B, answer_BA, answer_length_B, tokenizer
      )
    )

  def _result(self, left, operation, right, stream):
    probability, wrong = self.belief(left, operation, right)
    if stream.uniform() >= probability:
      return wrong
    return super()._result(left, operation, right, stream)


@functools.cache
def _belief(seed, doubt, left, operation, right):
  stream = draws.Draws('belief', seed, left, operation, right)
  result = apply(left, operation, right)
  return stream.uniform() ** doubt, (result + 1 + stream.below(9)) % 10


def _proved(found):
  """Removes the outcome of responses whose steps are not all right."""
  proved = found['steps'] == 1.0
  return found | {
    name: found[name] * proved for name in (base.OUTCOME, 'hit_rank')
  }
