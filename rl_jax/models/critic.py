"""The input of the value head: the policy's layers, or a separate model."""

from typing import Any

import jax
import jax.numpy as jnp

SHARED, DETACHED, OWN = 'shared', 'detached', 'own'
RESIDUAL = 'residual'  # the first output as OWN, the others as SHARED
CRITICS = (SHARED, DETACHED, OWN, RESIDUAL)
# The top-level trees of the parameters that only a critic's loss trains,
# unless its layers are the policy's.
PARTS = ('critic', 'value_head')


def has_own(cfg: Any) -> bool:
  """Returns whether the model has a second set of layers, for the value
  head.
  """
  return cfg.value_head and cfg.critic in (OWN, RESIDUAL)


def specs(model: dict[str, Any]) -> dict[str, Any]:
  """The layers of a critic: those of the policy, without its output weights."""
  return {name: x for name, x in model.items() if name != 'lm_head'}


def copied(params: dict[str, Any]) -> dict[str, Any]:
  """A critic that starts as a copy of the policy's layers.

  The copy has its own buffers: a training state is donated, each buffer once.
  """
  return jax.tree.map(jnp.copy, specs(params['model']))


def params_of(params: dict[str, Any], cfg: Any) -> dict[str, Any]:
  """The parameters with which states for the value head are computed."""
  return {'model': params['critic']} if has_own(cfg) else params
