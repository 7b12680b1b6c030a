"""Kullback-Leibler divergences, from samples and from full distributions."""

import jax
import jax.numpy as jnp

from rl_jax.pieces.ops.ratios import LOG_RATIO_BOUND
from rl_jax.types import Array

ESTIMATORS = ('k1', 'k2', 'k3', 'abs', 'k1+', 'k3+')


def kl_estimate(logp: Array, logp_other: Array, estimator: str) -> Array:
  """Per-token estimate of KL(p || other) at tokens drawn from p.

    x = logp_other - logp, within +-20 nats
    k1 = -x    k2 = x^2 / 2    k3 = exp(x) - x - 1    abs = |x|
    k1+, k3+: the value of k1, k3 with the gradient of k2

  As a loss, the expected gradient of k1 is 0, that of k2 is the gradient of
  KL(p || other) and that of k3 is the gradient of KL(other || p). Where the
  policies agree every gradient but that of k1 is 0.
  Source: Schulman, "Approximating KL divergence"; verl core_algos.py
  (kl_penalty), which also cuts k3 to +-10.

  Raises:
    ValueError: estimator is none of ESTIMATORS.
  """
  x = jnp.clip(logp_other - logp, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)
  k2 = 0.5 * x**2
  if estimator == 'k1':
    return -x
  if estimator == 'k2':
    return k2
  if estimator == 'k3':
    return jnp.expm1(x) - x
  if estimator == 'abs':
    return x * jnp.sign(x)  # jnp.abs has slope 1 at 0
  if estimator in ('k1+', 'k3+'):
    value = kl_estimate(logp, logp_other, estimator[:-1])
    return k2 + jax.lax.stop_gradient(value - k2)
  raise ValueError(
    f'estimator = {estimator!r} is none of ' + ', '.join(ESTIMATORS)
  )


def kl_exact(logp_V: Array, logq_V: Array) -> Array:
  """KL(p || q) = sum_v p (log p - log q) over the last axis, in nats."""
  return (jnp.exp(logp_V) * (logp_V - logq_V)).sum(-1)
