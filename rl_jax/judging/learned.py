"""Learned rewards of samples: computed, weighted and kept on the device."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array, Trajectories


def _nothing(traj: Trajectories, kind: str | None = None) -> dict[str, Array]:
  """The scores of a run without reward models."""
  del traj, kind
  return {}


@dataclasses.dataclass(frozen=True)
class LearnedRewards:
  """score: rows -> scores by name, dispatched before the host verifies.

  Those [B] are rewards, the others are extras. weights: what each adds to the
  reward of the task. The default has none. The host never reads them: rounds
  and selectors know only the rewards of task and judges.

  single: `score` without the models that compare responses. compare: (groups of
  policy and opponent, kind of rivals, see ops.rivals) -> the scores of these.
  """

  score: Callable[[Trajectories], dict[str, Array]] = _nothing
  weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
  place: Any = None  # the sharding of the rows
  single: Callable[[Trajectories], dict[str, Array]] = _nothing
  compare: Callable[[Trajectories, str], dict[str, Array]] = _nothing

  @functools.cached_property
  def _jitted(self):
    weigh = functools.partial(with_learned, dict(self.weights))
    return jax.jit(weigh, out_shardings=self.place)

  def add(self, traj: Trajectories, scores: dict[str, Array]) -> Trajectories:
    """The rows, which have their other rewards, with the scores."""
    return self._jitted(traj, scores) if scores else traj


NO_LEARNED = LearnedRewards()


def with_learned(
  weights: dict[str, float], traj: Trajectories, scores: dict[str, Array]
) -> Trajectories:
  """reward += sum of weight * score; a row without finite scores is invalid.

  Scores [B] are rewards; those with a second axis become extras.
  """
  extras = {k: x for k, x in scores.items() if x.ndim == 2}
  scores = {k: x_B for k, x_B in scores.items() if k not in extras}
  finite_B = functools.reduce(
    jnp.logical_and, map(jnp.isfinite, scores.values())
  )
  scores = {k: jnp.where(finite_B, x, 0.0) for k, x in scores.items()}
  total_B = sum(weights[name] * x for name, x in scores.items())
  return traj.replace(
    rewards={**traj.rewards, **scores},
    extras={**traj.extras, **extras},
    reward_B=traj.reward_B + total_B,
    valid_B=jnp.where(finite_B, traj.valid_B, 0.0),
    weight_B=jnp.where(finite_B, traj.weight_B, 0.0),
  )
