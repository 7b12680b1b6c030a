"""CRAFT-GUI: prompts of low levels first, then mixed ones, then the hardest."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.batches import check_fits, check_levels, check_places
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary, static


@piece
class StagedLevels(Selector):
  """Each stage draws the prompts of some levels, in passes over them.

    batches 0 to ends[0] - 1: levels stages[0][0] to stages[0][1]
    batches ends[k - 1] to ends[k] - 1: stages[k]; the last one has no end

  Prompt i is of level i mod `levels`, as of tasks.Levels, so that no prompt may
  be skipped. Within a stage every prompt comes once before one returns, at
  random; where its levels have too few, others fill the batch. One stage of all
  levels is a shuffled pass.
  Source: "CRAFT-GUI: Curriculum-Reinforced Agent For GUI Tasks", reconstructed
  from its abstract: short tasks, then mixed ones, then long ones; the number of
  steps is the level.
  """

  levels: int = ranged(3, 1, static=True)
  stages: tuple[tuple[int, int], ...] = static(default=((0, 0), (0, 1), (1, 2)))
  ends: tuple[int, ...] = static(default=(20, 40))  # batches

  def __post_init__(self):
    if len(self.ends) != len(self.stages) - 1 or any(
      after <= before
      for before, after in zip((0, *self.ends), self.ends, strict=False)
    ):
      raise ValueError(
        f'StagedLevels.ends = {self.ends} for {len(self.stages)} stages: '
        'expected one rising number of batches for each but the last'
      )
    for first, last in self.stages:
      if not 0 <= first <= last < self.levels:
        raise ValueError(
          f'StagedLevels.stages = {self.stages}: ({first}, {last}) is not a '
          f'range of the levels 0 to {self.levels - 1}'
        )

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if a skipped prompt shifts the levels of others."""
    if context.prompts is not None:
      check_places(type(self).__name__, context.prompts)

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No prompt has been drawn.

    Raises:
      ValueError: there are more levels than prompts.
    """
    check_levels('StagedLevels', self.levels, num_prompts)
    return {
      'batches': jnp.zeros((), jnp.int32),
      'visits': jnp.zeros(num_prompts, jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    check_fits(count, state['visits'].shape[0])
    ends = jnp.asarray(self.ends, jnp.int32)
    stage = (state['batches'] >= ends).sum()
    begins = (state['batches'] == ends).any()
    visits_N = jnp.where(begins, 0, state['visits'])
    low, high = jnp.asarray(self.stages)[stage]
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, state['batches'])
    ids = jax.random.permutation(key, visits_N.shape[0])
    level_N = ids % self.levels
    other_N = (level_N < low) | (level_N > high)
    order_N = jnp.lexsort((visits_N[ids], other_N))
    found = ids[order_N[:count]].astype(jnp.int32)
    return found, {
      'batches': state['batches'] + 1,
      'visits': visits_N.at[found].add(1),
    }

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """The state does not depend on what was sampled."""
    del ids, summary
    return state
