"""PCL: prompts whose predicted success is near a target."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.batches import check_fits
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


def candidates(
  key: Array, batches: Array, ratio: int, count: int, size: int
) -> Array:
  """The prompts among which batch number `batches` is chosen, int32.

  ratio * count of them, or all: uniform, without replacement.
  """
  # The key is that of the run: every batch needs its own numbers.
  order = jax.random.permutation(jax.random.fold_in(key, batches), size)
  return order[: min(ratio * count, size)].astype(jnp.int32)


def mean_success(summary: GroupSummary, success: str) -> tuple[Array, Array]:
  """(mean success of each group [N], 1 for those with a judged sample [N])."""
  known = jnp.isfinite(summary.reward_NG)
  value = summary.right_NG if success == 'right' else summary.reward_NG
  total = jnp.where(known, value, 0.0).sum(1)
  judged = known.sum(1)
  return total / jnp.maximum(judged, 1), (judged > 0).astype(jnp.float32)


@piece
class PromptValue(Selector):
  """The prompts of a batch are those of k candidates each nearest to a target.

    D = argmin over |S| = count of sum_{x in S} |V(x) - target|
    V <- V - learning_rate * Adam of mean_i (V(x_i) - mean_j success_ij)^2

  Candidates are candidate_ratio * count prompts, uniform without replacement;
  of equal distances the order is random. V is a model that reads the prompt
  only; a batch is chosen by the V that had learned from the batches before it.
  In a run V is a copy of the initial policy with a value head
  (runs/valued_prompts.py). By itself the piece has a table of the last mean
  success of each prompt, 0 before the first.
  Success is the reward, or with 'right' whether a response is right; failed
  verifications (NaN) do not count. candidate_ratio 1 is a uniform draw.
  Source: "Prompt Curriculum Learning for Efficient LLM Post-Training", from a
  note with its equations; the learning rate is ours.
  """

  candidate_ratio: int = ranged(4, 1, static=True)
  target: float = ranged(0.5)
  learning_rate: float = ranged(1e-3, 0.0)  # of V
  success: str = chosen('reward', ('reward', 'right'))

  @property
  def predicts(self) -> bool:
    """See Selector."""
    return True

  def init(self, num_prompts: int) -> dict[str, Array]:
    """Values of 0, and no batch yet."""
    return {
      'value': jnp.zeros(num_prompts, jnp.float32),
      'batches': jnp.zeros((), jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    size = state['value'].shape[0]
    check_fits(count, size)
    ids = candidates(key, state['batches'], self.candidate_ratio, count, size)
    distance = jnp.abs(state['value'][ids] - self.target)
    # A stable sort: equal ones keep their random order.
    found = ids[jnp.argsort(distance, stable=True)[:count]]
    return found, {**state, 'batches': state['batches'] + 1}

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """The table has the mean success of the groups."""
    mean, judged = mean_success(summary, self.success)
    ids = jnp.asarray(ids)
    mean = jnp.where(judged > 0, mean, state['value'][ids])
    return {**state, 'value': state['value'].at[ids].set(mean)}
