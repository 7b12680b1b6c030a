"""Weights of earlier iterations, which sample where rollouts are stale.

With s = rollout.staleness the rollout of iteration k + 1 is sampled from

  theta_{k-s}, or theta_0 where k < s

the schedule of a sampler whose weights are s updates older than those of a
trainer beside it. Between iterations the history is ((theta_{k-s}, step), ...,
(theta_{k-1}, step)), each with the optimizer steps that made it; s = 0 has
none. The functions are pure, so that the loop and a scanned run share them.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Array

Step = TypeVar('Step', bound=Array | int)  # of the host, or traced
History = tuple[tuple[Any, Step], ...]


def initial(staleness: int, params: Any, step: Step) -> History[Step]:
  """The history before the first iteration; params must outlive the updates."""
  return ((params, step),) * staleness


def sampler(
  history: History[Step], params: Any, step: Step
) -> tuple[Any, Step]:
  """(weights, their optimizer steps) that sample next; params: the current."""
  return history[0] if history else (params, step)


def pushed(history: History[Step], params: Any, step: Step) -> History[Step]:
  """The history after an update of params, of which it keeps those before."""
  return (*history[1:], (params, step)) if history else ()


class LaggedWeights(Stateful):
  """The history of a run of the loop.

  keep: copies weights, so that they outlive the updates.
  """

  name: ClassVar[str] = 'lagged weights'

  def __init__(self, staleness: int, params: Any, keep: Callable[[Any], Any]):
    self._keep = keep
    kept = keep(params) if staleness else None
    self.history: History[int] = initial(staleness, kept, 0)

  def sampler(self, params: Any, step: int) -> tuple[Any, int]:
    """See the function of that name."""
    return sampler(self.history, params, step)

  def push(self, params: Any, step: int) -> None:
    """Keeps the weights that the next update takes, if rollouts are stale."""
    if self.history:
      self.history = pushed(self.history, self._keep(params), step)

  def arrays(self) -> dict[str, Any]:
    """The weights, if rollouts are stale."""
    weights = [params for params, _ in self.history]
    return {'lagged_weights': weights} if weights else {}

  def host(self) -> dict[str, Any]:
    """Their optimizer steps."""
    return {'lagged_steps': [step for _, step in self.history]}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    weights = arrays.get('lagged_weights', ())
    steps = host.get('lagged_steps', ())
    self.history = tuple(zip(weights, steps, strict=True))


def check(rollout: Any, max_logp_gap: float | None) -> None:
  """Raises ValueError if nothing is sampled, or a guard would end the run."""
  staleness = rollout.staleness
  if not staleness:
    return
  if rollout.recorded_prompts == rollout.num_prompts:
    raise ValueError(
      f'rollout.staleness = {staleness}, but all rows are data '
      f'(rollout.recorded_prompts = {rollout.recorded_prompts}): set it to 0'
    )
  if max_logp_gap is not None:
    raise ValueError(
      f'rollout.staleness = {staleness}: sampler and trainer have other '
      f'weights on purpose, and guards.max_logp_gap = {max_logp_gap} would end '
      'the run: set it to null'
    )
