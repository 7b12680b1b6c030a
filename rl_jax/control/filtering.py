"""The choice of learning histories to imitate (AD + LHF)."""

import jax
import jax.numpy as jnp

from rl_jax.pieces.ops.masking import masked_mean, safe_divide
from rl_jax.types import Array


def utility(
  return_RE: Array, best: Array, stability: float = 1.0
) -> tuple[Array, Array, Array]:
  """(U, Imp, Stab) of the histories of one task, each [R].

    Imp = (mean R + max R - min R) / (2 best)
    Stab = 1 + mean{R_{e+1} - R_e : R_{e+1} < R_e} / best, 1 without a fall
    U = Imp + stability * Stab

  return_RE: returns of the episodes. best: the largest return of the task. Imp
  is within [0, 1] only for returns within [0, best].
  Source: "Filtering Learning Histories Enhances In-Context Reinforcement
  Learning", section 3.
  """
  spread_R = return_RE.max(axis=1) - return_RE.min(axis=1)
  improved_R = safe_divide(return_RE.mean(axis=1) + spread_R, 2 * best)
  change_RE = jnp.diff(return_RE, axis=1)
  fell_RE = (change_RE < 0).astype(jnp.float32)
  steady_R = 1 + safe_divide(masked_mean(change_RE, fell_RE, axis=1), best)
  return improved_R + stability * steady_R, improved_R, steady_R


def keep_probabilities(
  utility_R: Array, temperature: float | None = None
) -> Array:
  """(U - min U) / (max U - min U) within a task, [R]; 1 where all are equal.

  temperature: the same of softmax(U / temperature). Drawing histories with
  probabilities in proportion to these is the published pass over all histories
  up to its last, cut pass.
  """
  if temperature is not None:
    utility_R = jax.nn.softmax(utility_R / temperature)
  low, high = utility_R.min(), utility_R.max()
  equal = high - low <= 1e-6 * jnp.abs(high)
  return jnp.where(
    equal, 1.0, safe_divide(utility_R - low, jnp.where(equal, 1.0, high - low))
  )
