"""The change of entropy in an update, and what its covariance predicted."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import numpy as np

from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Metrics


def entropy_change(
  metrics: Metrics, last_entropy: Any | None, learning_rate: Any
) -> Metrics:
  """Two metrics of an iteration, elementwise: numbers, or whole columns.

    policy/entropy_change            entropy minus that of the iteration before
    policy/entropy_change_predicted  -learning_rate cov(logp, A)

  The covariance is over trained tokens. The prediction is of the next row's
  change, for one step of natural policy gradient on a softmax over actions
  ("The Entropy Mechanism of Reinforcement Learning for Reasoning Language
  Models", Theorem 1). Adam steps by another length: compare signs and course.
  """
  changes = {}
  if last_entropy is not None:
    changes['policy/entropy_change'] = metrics['policy/entropy'] - last_entropy
  if 'policy/covariance' in metrics:
    predicted = metrics['policy/covariance'] * -learning_rate
    changes['policy/entropy_change_predicted'] = predicted
  return changes


def changes_over_course(
  metrics: Metrics, learning_rate: float | np.ndarray
) -> Metrics:
  """entropy_change of columns [..., I] that the host has; the first is NaN.

  learning_rate: one for all, or [..., 1].
  """
  entropy = metrics['policy/entropy']
  nothing = np.full_like(entropy[..., :1], np.nan)
  last = np.concatenate([nothing, entropy[..., :-1]], axis=-1)
  return entropy_change(metrics, last, learning_rate)


class EntropyChange(Stateful):
  """entropy_change of iteration after iteration; nothing is read.

  It saves nothing: the last entropy is one of the counters.
  """

  name: ClassVar[str] = 'entropy change'

  def __init__(self, learning_rate: float, mesh: jax.sharding.Mesh):
    self._everywhere = mesh_lib.replicated(mesh)
    self._rate = self._put(learning_rate)
    self._last: jax.Array | None = None

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Continues after the iteration that the counters are of."""
    del arrays
    entropy = host['counters'].get('entropy')
    self._last = None if entropy is None else self._put(entropy)

  def __call__(self, metrics: Metrics) -> Metrics:
    """The two metrics, as far as they are known."""
    changes = entropy_change(metrics, self._last, self._rate)
    self._last = metrics['policy/entropy']
    return changes

  def _put(self, number: float) -> jax.Array:
    return processes.put(np.float32(number), self._everywhere)
