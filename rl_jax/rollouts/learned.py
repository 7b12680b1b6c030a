"""Learned rewards of samples: computed, weighted and kept on the device."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array, Trajectories


@dataclasses.dataclass(frozen=True)
class LearnedRewards:
  """score: rows -> scores by name, dispatched before the host verifies.

  Those [B] are rewards, those [B, T] are extras. weights: what each adds to the
  reward of the task. The default has none. The host never reads them: rounds
  and selectors know the rewards of task and judges alone.
  """

  score: Callable[[Trajectories], dict[str, Array]] = lambda traj: {}
  weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
  place: Any = None  # the sharding of the rows

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
  """reward += sum of weight * score; a row without finite scores is invalid."""
  tokens = {k: x_BT for k, x_BT in scores.items() if x_BT.ndim == 2}
  scores = {k: x_B for k, x_B in scores.items() if k not in tokens}
  finite_B = functools.reduce(
    jnp.logical_and, map(jnp.isfinite, scores.values())
  )
  scores = {k: jnp.where(finite_B, x, 0.0) for k, x in scores.items()}
  total_B = sum(weights[name] * x for name, x in scores.items())
  return traj.replace(
    rewards={**traj.rewards, **scores},
    extras={**traj.extras, **tokens},
    reward_B=traj.reward_B + total_B,
    valid_B=jnp.where(finite_B, traj.valid_B, 0.0),
    weight_B=jnp.where(finite_B, traj.weight_B, 0.0),
  )
