"""The named policies of a run: copies of its trainable weights, kept by rule.

  frozen = {**weights that no run trains, 'policies': {name: replicated
  parameters}}

is what every stage gets beside the trained parameters. The functions are pure;
the loop calls them when a rule is due, a scanned run at every iteration.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen, Loaded
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Array


def initial(
  rules: dict[str, Any], trainable: Any, loaded: dict[str, Any] | None = None
) -> dict[str, Any]:
  """Returns what rules keep, copies: a buffer of the donated state is donated
  once.

  loaded: trees of the policies that are read from files, by name.

  Raises: ValueError for a rule Loaded without its tree.
  """
  loaded = loaded or {}
  for name, rule in rules.items():
    if isinstance(rule, Loaded) and name not in loaded:
      raise ValueError(
        f'the policy {name!r} is read from {rule.path}, which only runs of '
        'experiments.train without --jitted do'
      )
  return {
    name: loaded.get(name) or rule.start(jax.tree.map(jnp.copy, trainable))
    for name, rule in rules.items()
  }


def moving(rules: dict[str, Any], policies: dict[str, Any]) -> dict[str, Any]:
  """Those that a checkpoint must hold; frozen ones are loaded again."""
  return {
    name: kept
    for name, kept in policies.items()
    if not isinstance(rules[name], Frozen)
  }


def current(rules: dict[str, Any], policies: dict[str, Any]) -> dict[str, Any]:
  """The weights of each, of what its rule keeps."""
  return {name: rules[name].current(kept) for name, kept in policies.items()}


def with_policies(frozen: Any, policies: dict[str, Any]) -> Any:
  """Returns what a stage gets beside the trained parameters; policies: see
  current.
  """
  if not policies:
    return frozen
  whole = {name: {**frozen, **tree} for name, tree in policies.items()}
  return {**frozen, 'policies': whole}


def renewed(
  rules: dict[str, Any],
  policies: dict[str, Any],
  trainable: Any,
  iteration: Array,
) -> dict[str, Any]:
  """Returns what rules keep after iteration, which may be traced."""

  def one(rule, old):
    due, new = (
      rule.due(iteration),
      rule.renewed(old, _like(rule, old, trainable)),
    )
    return jax.tree.map(lambda n, o: jnp.where(due, n, o), new, old)

  return {name: one(rules[name], old) for name, old in policies.items()}


def _like(rule, kept, trainable):
  """The trained weights without what pieces learn."""
  return {name: trainable[name] for name in rule.current(kept)}


class Policies(Stateful):
  """The policies of one run of the loop."""

  name: ClassVar[str] = 'policies'

  def __init__(
    self,
    rules: dict[str, Any],
    frozen: Any,
    trainable: Any,
    loaded: dict[str, Any] | None = None,
  ):
    self._rules, self._frozen = rules, frozen
    self.trees = initial(rules, trainable, loaded)
    self._renew = {
      name: jax.jit(
        lambda old, new, rule=rule: jax.tree.map(
          jnp.copy, rule.renewed(old, new)
        ),
        donate_argnums=0,
      )
      for name, rule in rules.items()
    }

  def frozen(self) -> Any:
    """Returns what a stage gets beside the trained parameters."""
    return with_policies(self._frozen, current(self._rules, self.trees))

  def renew(self, trainable: Any, iteration: int) -> None:
    """Returns what is due after an iteration."""
    for name, rule in self._rules.items():
      if rule.due(iteration):
        old = self.trees[name]
        new = _like(rule, old, trainable)
        self.trees[name] = self._renew[name](old, new)

  def arrays(self) -> dict[str, Any]:
    """The trees that a checkpoint must hold."""
    return moving(self._rules, self.trees)

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del host
    self.trees |= {name: arrays[name] for name in self.arrays()}
