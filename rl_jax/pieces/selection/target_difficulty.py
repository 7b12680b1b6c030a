"""AdaRFT: prompts of a difficulty that follows the reward."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.batches import check_fits, check_levels, check_places
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


@piece
class TargetDifficulty(Selector):
  """Draws the prompts whose difficulty is nearest to a target.

    d_i = (i mod levels) / (levels - 1), from 0 (easy) to 1
    T <- clip(T + step tanh(sensitivity (mean success - goal)), 0, 1), T_0 = 0
    the next `count` prompts: the smallest |d_i - T|, at random among equals

  The mean is over all samples of a batch; success is the reward, or with
  success = 'right' whether the response is right; failed verifications (NaN) do
  not count. Prompts repeat their levels in this order, easiest first, as the
  training forms of worlds.WebForm(filled=(0.9, 0.6, 0.3, 0.0)) do; i is the
  place among the usable prompts, so that none may be skipped.
  Source: "Efficient Reinforcement Finetuning via Adaptive Curriculum Learning",
  which has difficulties from 0 to 100 and a step of 50 of them.
  """

  levels: int = ranged(2, 2, static=True)
  step: float = ranged(0.5, 0.0, open_low=True)
  sensitivity: float = ranged(2.0, 0.0, open_low=True)
  goal: float = ranged(0.5, 0.0, 1.0)
  success: str = chosen('reward', ('reward', 'right'))

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if a skipped prompt shifts the levels of others."""
    prompts = context.prompts
    if prompts is None:
      return
    check_places(type(self).__name__, prompts)

  def init(self, num_prompts: int) -> dict[str, Array]:
    """The target, of the easiest prompts.

    Raises:
      ValueError: there are more levels than prompts.
    """
    check_levels('TargetDifficulty', self.levels, num_prompts)
    return {
      'target': jnp.zeros((), jnp.float32),
      'difficulty': (jnp.arange(num_prompts) % self.levels)
      / jnp.float32(self.levels - 1),
      'batches': jnp.zeros((), jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    size = state['difficulty'].shape[0]
    check_fits(count, size)
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, state['batches'])
    ids = jax.random.permutation(key, size)
    distance = jnp.abs(state['difficulty'][ids] - state['target'])
    # A stable sort: equal ones keep their random order.
    found = ids[jnp.argsort(distance, stable=True)[:count]]
    return found.astype(jnp.int32), {**state, 'batches': state['batches'] + 1}

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """Moves the target by the mean success; unmoved without a judged sample."""
    del ids
    known = jnp.isfinite(summary.reward_NG)
    success = summary.reward_NG
    if self.success == 'right':
      success = jnp.asarray(summary.right_NG, jnp.float32)
    mean = jnp.where(known, success, 0.0).sum() / jnp.maximum(known.sum(), 1)
    moved = self.step * jnp.tanh(self.sensitivity * (mean - self.goal))
    target = state['target'] + jnp.where(known.any(), moved, 0.0)
    return {**state, 'target': jnp.clip(target, 0.0, 1.0)}
