"""Transforms of the sampling distribution, replayed when scoring.

They see the logits of the policy, and those of the other policies that the
transforms of the method list in `policies`, by name.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import calls
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import NO_OTHERS, LogitContext, LogitTransform
from rl_jax.types import Array


@piece
class Temperature(LogitTransform):
  """logits / temperature."""

  temperature: float = ranged(1.0, 0.0, open_low=True)

  def __call__(self, ctx: LogitContext) -> Array:
    return ctx.logits_RV / self.temperature


@piece
class TopK(LogitTransform):
  """Keeps the k largest logits; ties with the k-th stay."""

  k: int = ranged(50, 1, static=True)

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why no token is left out, or an empty text."""
    if self.k < vocab_size:
      return ''
    return f'k = {self.k} keeps all {vocab_size} tokens'

  def __call__(self, ctx: LogitContext) -> Array:
    logits_RV = ctx.logits_RV
    k = min(self.k, logits_RV.shape[-1])
    least_R1 = jax.lax.top_k(logits_RV, k)[0][..., -1:]
    return jnp.where(logits_RV >= least_R1, logits_RV, -jnp.inf)


@piece
class TopP(LogitTransform):
  """Keeps the smallest set of likely tokens with mass of at least p.

  A token stays if the tokens before it, by falling probability, have a mass
  below p; ties with the last one stay. p = 1 keeps all, also those that a
  float32 sum of 1 leaves out. Source: nucleus sampling (1904.09751).
  """

  p: float = ranged(1.0, 0.0, 1.0, open_low=True)

  def __call__(self, ctx: LogitContext) -> Array:
    logits_RV = ctx.logits_RV
    probs_RV = jax.nn.softmax(logits_RV, axis=-1)
    falling_RV = jnp.sort(probs_RV, axis=-1, descending=True)
    before_RV = jnp.cumsum(falling_RV, axis=-1) - falling_RV
    inside_RV = (before_RV < self.p) | (self.p >= 1.0)
    kept_RV = jnp.where(inside_RV, falling_RV, jnp.inf)
    least_R1 = kept_RV.min(axis=-1, keepdims=True)
    return jnp.where(probs_RV >= least_R1, logits_RV, -jnp.inf)


@piece
class MinP(LogitTransform):
  """Keeps tokens with at least p times the largest probability.

  Source: min-p sampling (2407.01082).
  """

  p: float = ranged(0.0, 0.0, 1.0)

  def __call__(self, ctx: LogitContext) -> Array:
    logits_RV = ctx.logits_RV
    probs_RV = jax.nn.softmax(logits_RV, axis=-1)
    least_R1 = self.p * probs_RV.max(axis=-1, keepdims=True)
    return jnp.where(probs_RV >= least_R1, logits_RV, -jnp.inf)


def policies_of(
  transforms: tuple[LogitTransform, ...], params: dict[str, Any]
) -> dict[str, Any]:
  """Parameters of the policies that the transforms read, by name.

  Only those that params hold: none in an evaluation, which may have others.
  """
  held = params.get('policies', {})
  return {name: held[name] for name in policy_names(transforms) if name in held}


def policy_names(transforms: tuple[LogitTransform, ...]) -> list[str]:
  """Names of the policies that the transforms read, sorted."""
  return sorted(
    {name for transform in transforms for name in transform.policies}
  )


def read_values(transforms: tuple[LogitTransform, ...]) -> bool:
  """Returns whether a transform reads outputs of the policy's value head."""
  return any(transform.value_heads for transform in transforms)


def apply_transforms(
  transforms: tuple[LogitTransform, ...],
  temperature: Array | float,
  logits_RV: Array,
  others: Mapping[str, Array] = NO_OTHERS,
  values_RH: Array | None = None,
) -> Array:
  """logits / temperature, through the transforms in order.

  values: outputs of the policy's value head, for those with `value_heads`.

  Raises: ValueError if these are not computed here.
  """
  logits_RV = logits_RV / temperature
  others = {name: other_RV / temperature for name, other_RV in others.items()}
  for transform in transforms:
    if transform.value_heads and values_RH is None:
      raise ValueError(
        f'{type(transform).__name__} reads the value head, which beam search '
        'and rollout.speculative do not compute'
      )
    ctx = LogitContext(logits_RV, others, values_RH)
    logits_RV = calls.logits(transform, ctx)
  return logits_RV
