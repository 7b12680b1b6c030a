"""Named policies of a run that are read from files."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.models import critic
from rl_jax.pieces.policies import Loaded
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.policy import Policy


def read(
  rules: dict[str, Any], policy: Policy, mesh: jax.sharding.Mesh
) -> dict[str, Any]:
  """Trees in the form of policy.trainable, of the rules Loaded, by name.

  What the model has no weights for, a critic, is that of the policy.

  Raises: ValueError naming the policy whose model or tokens are others.
  """
  return {
    name: _read(name, rule.path, policy, mesh)
    for name, rule in rules.items()
    if isinstance(rule, Loaded)
  }


def _read(name, path, policy, mesh):
  policy_lib.check(path)
  _, params, tokenizer = policy_lib.load_checkpoint(path, mesh)
  if list(tokenizer.token_bytes) != list(policy.tokenizer.token_bytes):
    raise ValueError(
      f'the policy {name!r} ({path}) does not have the vocabulary of the run'
    )
  found = {}
  for part, own in policy.trainable.items():
    read = own if part in critic.PARTS else params.get(part)
    if read is None or _shapes(read) != _shapes(own):
      raise ValueError(
        f'the policy {name!r} ({path}) has another model than the run: its '
        f'{part!r} is {_shapes(read)}, not {_shapes(own)}'
      )
    found[part] = jax.tree.map(
      lambda new, old: jnp.array(new, old.dtype, copy=True), read, own
    )
  return found


def _shapes(tree):
  return jax.tree.map(lambda x: x.shape, tree)
