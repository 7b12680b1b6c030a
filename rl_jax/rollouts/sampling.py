"""From logits to a token: transforms of the distribution, and the draw.

A transform is called with the logits of the policy, and with those of its
lagged copy, params['lagged'], if a transform of the method has a `period`.
"""

import chex
from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.types import Array, check_range, static


@struct.dataclass(kw_only=True)
class Temperature:
  """logits / temperature."""

  temperature: float = 1.0

  def __post_init__(self):
    check_range(self, 'temperature', 0.0, open_low=True)

  def __call__(self, logits_RV: Array, lagged_RV: Array | None = None) -> Array:
    return logits_RV / self.temperature


@struct.dataclass(kw_only=True)
class TopK:
  """Keeps the k largest logits; ties with the k-th stay."""

  k: int = static(default=50)

  def __post_init__(self):
    check_range(self, 'k', 1)

  def __call__(self, logits_RV: Array, lagged_RV: Array | None = None) -> Array:
    k = min(self.k, logits_RV.shape[-1])
    least_R1 = jax.lax.top_k(logits_RV, k)[0][:, -1:]
    return jnp.where(logits_RV >= least_R1, logits_RV, -jnp.inf)


@struct.dataclass(kw_only=True)
class TopP:
  """Keeps the smallest set of likely tokens with mass of at least p.

  A token stays if the tokens before it, by falling probability, have a mass
  below p; ties with the last one stay. Source: nucleus sampling (1904.09751).
  """

  p: float = 1.0

  def __post_init__(self):
    check_range(self, 'p', 0.0, 1.0, open_low=True)

  def __call__(self, logits_RV: Array, lagged_RV: Array | None = None) -> Array:
    probs_RV = jax.nn.softmax(logits_RV, axis=-1)
    falling_RV = jnp.sort(probs_RV, axis=-1, descending=True)
    before_RV = jnp.cumsum(falling_RV, axis=-1) - falling_RV
    kept_RV = jnp.where(before_RV < self.p, falling_RV, jnp.inf)
    least_R1 = kept_RV.min(axis=-1, keepdims=True)
    return jnp.where(probs_RV >= least_R1, logits_RV, -jnp.inf)


@struct.dataclass(kw_only=True)
class MinP:
  """Keeps tokens with at least p times the largest probability.

  Source: min-p sampling (2407.01082).
  """

  p: float = 0.0

  def __post_init__(self):
    check_range(self, 'p', 0.0, 1.0)

  def __call__(self, logits_RV: Array, lagged_RV: Array | None = None) -> Array:
    probs_RV = jax.nn.softmax(logits_RV, axis=-1)
    least_R1 = self.p * probs_RV.max(axis=-1, keepdims=True)
    return jnp.where(probs_RV >= least_R1, logits_RV, -jnp.inf)


def apply_transforms(
  transforms: tuple,
  temperature: Array | float,
  logits_RV: Array,
  lagged_RV: Array | None = None,
) -> Array:
  """logits / temperature, through the transforms in order."""
  logits_RV = logits_RV / temperature
  if lagged_RV is not None:
    lagged_RV = lagged_RV / temperature
  for transform in transforms:
    logits_RV = transform(logits_RV, lagged_RV)
  return logits_RV


@struct.dataclass(kw_only=True)
class SamplingConfig:
  """How tokens are drawn.

  temperature comes first, then the transforms, in order. greedy takes the
  most likely token; logp is then still that of the distribution. eos_ids end
  a response and are part of it.
  """

  temperature: float = 1.0
  greedy: bool = static(default=False)
  eos_ids: tuple[int, ...] = static(default=())
  transforms: tuple = ()

  def __post_init__(self):
    check_range(self, 'temperature', 0.0, open_low=True)

  def transform(
    self, logits_RV: Array, lagged_RV: Array | None = None
  ) -> Array:
    """The logits that tokens are drawn from; replayed when scoring.

    lagged_RV: logits of the lagged copy of the policy, if a transform reads it.
    """
    return apply_transforms(
      self.transforms, self.temperature, logits_RV, lagged_RV
    )


def sample_token(
  logits_BV: Array, uniform_B: Array, greedy: bool = False
) -> tuple[Array, Array]:
  """Draws a token per row by inverse CDF: (int32[B], its logp, float32[B]).

  One uniform per token instead of V Gumbel draws. A token of probability 0
  cannot be drawn, although rounding may leave the running sum not monotone.
  """
  chex.assert_rank([logits_BV, uniform_B], [2, 1])
  logp_BV = jax.nn.log_softmax(logits_BV.astype(jnp.float32), axis=-1)
  token_B = jnp.argmax(logp_BV, axis=-1)
  if not greedy:
    probs_BV = jnp.exp(logp_BV)
    cdf_BV = jnp.cumsum(probs_BV, axis=-1)
    target_B1 = uniform_B[:, None] * cdf_BV[:, -1:]
    above_BV = (cdf_BV > target_B1) & (probs_BV > 0)
    token_B = jnp.where(
      above_BV.any(axis=-1), jnp.argmax(above_BV, axis=-1), token_B
    )
  logp_B = jnp.take_along_axis(logp_BV, token_B[:, None], axis=-1)[:, 0]
  return token_B.astype(jnp.int32), logp_B
