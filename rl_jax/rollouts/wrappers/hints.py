"""Samples of prompts with the task's hints, for wrappers that draw them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.join import take_from_rounds
from rl_jax.types import Array, Trajectories


class Hints(RolloutWrapper):
  """The base of rollout pieces that sample some prompts again with a hint."""

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task cannot write hints, or too long ones."""
    if context.task is not None:
      check_hints(type(self).__name__, context.task)
    if context.prompts is not None:
      context.prompts.check(context.prompts.task.hinted)

  def sample_hinted(
    self, done: Any, sampler: Any, wanted_N: np.ndarray, changed: Any = None
  ) -> tuple[Trajectories, Any, np.ndarray]:
    """(a group of every prompt with its hint, its round, those to be used).

    A prompt that is too long with its hint has none and is not used.
    changed: the examples with hints; None: as the task writes them.
    """
    if changed is None:
      changed = [sampler.task.hinted(example) for example in done.examples]
    fits_N = np.asarray([sampler.fits(example) for example in changed])
    triples = zip(changed, fits_N, done.examples, strict=True)
    examples = [new if fits else old for new, fits, old in triples]
    hinted, more = sampler.sample(examples, done.indices)
    return hinted, more, wanted_N & fits_N


def check_hints(who: str, task: Any) -> None:
  """Raises ValueError if the task cannot write hints."""
  if not task.supports('hinted'):
    raise ValueError(
      f'method.rollout: {who} needs a task with hints, but '
      f'{type(task).__name__} has no method `hinted`'
    )


def check_shares(who: str, task: Any) -> None:
  """Raises ValueError if hints cannot be a given share of the solution."""
  if not task.supports('hinted_by'):
    raise ValueError(
      f'method.rollout: {who} needs a task with hints of any length, but '
      f'{type(task).__name__} has no method `hinted_by`'
    )


def chosen_groups(
  rounds: tuple[Trajectories, ...], group_N: Array
) -> Trajectories:
  """Groups by their number in concatenated rounds, each with its prompt.

  Rounds after the first have hints, which the rows say as 'foreign_B'.
  """
  first = rounds[0]
  rows = take_from_rounds(rounds, group_N)
  hinted_N = (group_N >= first.num_prompts).astype(jnp.float32)
  foreign_B = jnp.repeat(hinted_N, first.group_size)
  return rows.replace(extras={**rows.extras, 'foreign_B': foreign_B})
