"""State values, and action values of every token of the vocabulary."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import ValueStatistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


def num_values(vocab_size: int) -> int:
  """Outputs of the value head: V, Q_1 of every token, Q_2 of every token."""
  return 1 + 2 * vocab_size


def split(outputs: Array) -> tuple[Array, Array]:
  """(V [...], Q_1 and Q_2 [..., 2, V]) of the outputs [..., 1 + 2 V]."""
  q = outputs[..., 1:]
  return outputs[..., 0], q.reshape(*q.shape[:-1], 2, -1)


@statistic
class ActionValues(ValueStatistic):
  """(V, Q_1(y_t), Q_2(y_t)) before token t, [B, T, 3].

  policy: the named policy whose value head is read, '' the trained one. The
  piece that needs it says in `policies` what the policy is.
  """

  policy: str = ''

  @property
  def name(self) -> str:
    """The key of the statistic."""
    return '_'.join(filter(None, ('action_values', self.policy)))

  @property
  def policies(self) -> dict[str, Any]:
    """The policy that is read."""
    return {self.policy: Frozen()} if self.policy else {}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C, 3]."""
    value_BC, q_BC2V = split(chunk.values[self.policy])
    token_BC11 = chunk.token_BC[..., None, None]
    q_BC2 = jnp.take_along_axis(q_BC2V, token_BC11, axis=-1)[..., 0]
    return jnp.concatenate([value_BC[..., None], q_BC2], axis=-1)


@statistic
class BestActionValue(ValueStatistic):
  """max_v min(Q_1, Q_2)(v) before token t, of the likely tokens, [B, T].

  v: tokens with at least so many percent of the probability of the likeliest,
  under the policy that is scored; 0: all tokens, 100: the likeliest. policy:
  whose Q are read, as of ActionValues.
  """

  least_percent: int = 0
  policy: str = ''

  @property
  def name(self) -> str:
    """The key of the statistic."""
    return '_'.join(filter(None, ('best_action_value', self.policy)))

  @property
  def policies(self) -> dict[str, Any]:
    """The policy that is read."""
    return {self.policy: Frozen()} if self.policy else {}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    _, q_BC2V = split(chunk.values[self.policy])
    best_BC1 = chunk.logits_BCV.max(axis=-1, keepdims=True)
    percent_BCV = 100 * jnp.exp(chunk.logits_BCV - best_BC1)
    likely_BCV = percent_BCV >= self.least_percent
    likely_BCV &= jnp.isfinite(chunk.logits_BCV)  # also where it is 0
    return jnp.where(likely_BCV, q_BC2V.min(axis=-2), -jnp.inf).max(axis=-1)


@statistic
class ActionNormalisers(ValueStatistic):
  """log sum_v exp Q_h(v) before token t, h = 1, 2, [B, T, 2]."""

  name = 'action_normalisers'

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C, 2]."""
    return jax.nn.logsumexp(split(chunk.values[self.policy])[1], axis=-1)
