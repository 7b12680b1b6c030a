"""What an update did to the entropy, and what its covariance predicted."""

import jax
import numpy as np

from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.types import Metrics


class EntropyChange:
  """Metrics of an iteration, from its own and the last one's; nothing is read.

    policy/entropy_change            entropy minus that of the iteration before
    policy/entropy_change_predicted  -learning_rate cov(logp, A)

  The covariance is over trained tokens. The prediction is of the next row's
  change, for one step of natural policy gradient on a softmax over actions
  ("The Entropy Mechanism of Reinforcement Learning for Reasoning Language
  Models", Theorem 1). Adam steps by another length: compare signs and course.
  """

  def __init__(self, learning_rate: float, mesh: jax.sharding.Mesh):
    self._everywhere = mesh_lib.replicated(mesh)
    self._negative_rate = self._put(-learning_rate)
    self._last: jax.Array | None = None

  def restore(self, entropy: float | None) -> None:
    """Continues behind an iteration of this entropy, or at the beginning."""
    self._last = None if entropy is None else self._put(entropy)

  def __call__(self, metrics: Metrics) -> Metrics:
    """The two metrics, as far as they are known."""
    entropy, found = metrics['policy/entropy'], {}
    if self._last is not None:
      found['policy/entropy_change'] = entropy - self._last
    self._last = entropy
    if 'policy/covariance' in metrics:
      found['policy/entropy_change_predicted'] = (
        metrics['policy/covariance'] * self._negative_rate
      )
    return found

  def _put(self, number: float) -> jax.Array:
    return processes.put(np.float32(number), self._everywhere)


def of_course(
  metrics: Metrics, learning_rate: float | np.ndarray
) -> dict[str, np.ndarray]:
  """The same two metrics of whole courses [..., I] that the host has.

  learning_rate: one for all, or [..., 1].
  """
  entropy = metrics['policy/entropy']
  change = np.diff(entropy, axis=-1, prepend=np.nan)
  found = {'policy/entropy_change': change}
  if 'policy/covariance' in metrics:
    found['policy/entropy_change_predicted'] = (
      metrics['policy/covariance'] * -learning_rate
    )
  return found
