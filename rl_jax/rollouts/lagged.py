"""Weights of earlier iterations, which sample where rollouts are stale.

With s = rollout.staleness the rollout of iteration k + 1 is sampled from

  theta_{k-s}, or theta_0 where k < s

the schedule of a sampler whose weights are s updates older than those of a
trainer beside it. Between iterations the history is ((theta_{k-s}, step), ...,
(theta_{k-1}, step)), each with the optimizer steps that made it; s = 0 has
none. The functions are pure, so that the loop and a scanned run share them.
"""

from typing import Any

from rl_jax.types import Array

History = tuple[tuple[Any, Array | int], ...]


def initial(staleness: int, params: Any, step: Array | int) -> History:
  """The history before the first iteration; params must outlive the updates."""
  return ((params, step),) * staleness


def sampler(
  history: History, params: Any, step: Array | int
) -> tuple[Any, Array | int]:
  """(weights, their optimizer steps) that sample next; params: the current."""
  return history[0] if history else (params, step)


def pushed(history: History, params: Any, step: Array | int) -> History:
  """The history after an update of params, of which it keeps those before."""
  return (*history[1:], (params, step)) if history else ()


def check(rollout: Any, max_logp_gap: float | None) -> None:
  """Raises ValueError if nothing is sampled, or a guard would end the run."""
  staleness = rollout.staleness
  if not staleness:
    return
  if rollout.logged_prompts == rollout.num_prompts:
    raise ValueError(
      f'rollout.staleness = {staleness}, but all rows are data '
      f'(rollout.logged_prompts = {rollout.logged_prompts}): set it to 0'
    )
  if max_logp_gap is not None:
    raise ValueError(
      f'rollout.staleness = {staleness}: sampler and trainer have other '
      f'weights on purpose, and guards.max_logp_gap = {max_logp_gap} would end '
      'the run: set it to null'
    )
