"""Steps of a critic beside those of the policy, in one optimizer."""

from collections.abc import Mapping
from typing import Any

import jax
import optax

from rl_jax.models.critic import PARTS


def clip_by_norm(max_norm: float) -> optax.GradientTransformation:
  """Clips the global norm; of a critic with separate layers, by itself.

    g <- g min(1, max_norm / |g|)    g: of the policy, or of layers and value
                                     head of the critic

  Else a large loss of the values would shorten the steps of the policy.
  """
  clip = optax.clip_by_global_norm(max_norm)

  def update(updates: Any, state: Any, params: Any = None):
    if not (isinstance(updates, Mapping) and 'critic' in updates):
      return clip.update(updates, state, params)
    clipped: list[Any] = []
    for part in _split(updates):
      part, state = clip.update(part, state)
      clipped.append(part)
    policy, critic = clipped
    return {**policy, **critic}, state

  return optax.GradientTransformation(clip.init, update)


def scale_critic(multiplier: float) -> optax.GradientTransformation:
  """Steps of value head and own layers of the critic, times the multiplier."""

  def scaled(updates: Any, params: Any):
    del params
    policy, critic = _split(updates)
    return {**policy, **jax.tree.map(lambda x: x * multiplier, critic)}

  return optax.stateless(scaled)


def _split(tree: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
  """(trees of the policy, trees of the critic)."""
  critic = {name: tree[name] for name in PARTS if name in tree}
  return {k: x for k, x in tree.items() if k not in critic}, critic
