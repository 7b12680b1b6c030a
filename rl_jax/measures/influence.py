"""Influence of a method's pieces during a run: see learning.influence."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.config import ExperimentConfig
from rl_jax.learning import influence
from rl_jax.learning.update import Batch
from rl_jax.method import Method
from rl_jax.pieces.ops import groups
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.runs import policies as policies_lib
from rl_jax.runs.stages import Functions
from rl_jax.types import TrainState

DRAWS = 200  # times that a selector is asked
TOLERANCE = 1e-3  # of `acts`: below it nothing acts


class Probe:
  """Measures every optimizer step of an iteration; the steps are as without.

  baseline: reads the run's named policies where it names the same, and the
  initial policy under other names.
  """

  def __init__(
    self,
    config: ExperimentConfig,
    functions: Functions,
    method: Method,
    baseline: Method,
    trainable: Any,
  ):
    self._every = config.diagnostics.influence_every
    self._num_ids = (
      config.task.num_prompts('train') * config.task.traits.players
    )
    own, others = config.method.policies(), baseline.policies()
    more = {name: rule for name, rule in others.items() if name not in own}
    kept = policies_lib.initial(more, trainable)
    self._more = policies_lib.current(more, kept)
    self._methods = influence.variants(method, baseline)
    self._baseline = baseline
    forward = functions.forward
    steps = config.rollout.num_prompts // functions.groups_per_minibatch
    whole = dataclasses.replace(
      forward, microbatches=forward.microbatches * steps
    )
    self._prepare = functools.partial(_prepare, whole)
    self._prepare_jitted = jax.jit(self._prepare)
    self._compare = jax.jit(functools.partial(_compare, forward))
    self._checked: set[str] = set()  # stages that all pieces left pass

  def due(self, iteration: int) -> bool:
    """Returns whether the next iteration, counted from 0, is measured."""
    return iteration % self._every == 0

  def around(self, step: Callable, state: TrainState, batch: Batch) -> Callable:
    """The step of an update that also returns influence, as metrics.

    batch: before its advantages.
    """
    frozen = _with_more(batch.frozen, self._more)
    states = self._states(state)
    rows = ({**frozen, **state.params}, batch.traj, states)
    self._drop_what_fails('rows', lambda methods: self._prepare(methods, *rows))
    trajs, changed = self._prepare_jitted(self._methods, *rows)

    def measured(state, batch, group_M, reuse_scores):
      now = state.replace(method_state=self._states(state), opt_state=())

      def compare(methods):
        kept = {name: trajs[name] for name in methods}
        return self._compare(methods, frozen, now, kept, batch.key, group_M)

      self._drop_what_fails('gradients', compare)
      found = compare(self._methods)
      state, metrics = step(
        state=state, batch=batch, group_M=group_M, reuse_scores=reuse_scores
      )
      return state, {**metrics, **found, 'influence/rows_changed': changed}

    return measured

  def _states(self, state):
    return influence.states_of(
      self._baseline, state.method_state, self._num_ids
    )

  def _drop_what_fails(self, stage, function):
    """Leaves out what the others need, once a stage."""
    if stage in self._checked:
      return
    self._checked.add(stage)
    self._methods = influence.tracing(function, self._methods)


def _with_more(frozen, more):
  """Parameters that are not trained, with further named policies."""
  whole = {name: x for name, x in frozen.items() if name != 'policies'}
  policies = {name: {**whole, **tree} for name, tree in more.items()}
  policies |= frozen.get('policies', {})
  return {**whole, 'policies': policies} if policies else whole


def _prepare(forward, methods, params, traj, states):
  """(rows of each method with advantages, share of rows that are changed)."""
  traj = influence.scored(forward, params, traj, methods)
  method = methods[influence.METHOD]
  return (
    influence.batches(methods, traj, states),
    influence.rows_changed(forward, params, traj, method),
  )


def _compare(forward, methods, frozen, state, trajs, key, group_M):
  """influence.compare on some groups, with the key of the update's step."""
  return influence.compare(
    forward,
    frozen,
    state.params,
    methods,
    {name: groups.take(traj, group_M) for name, traj in trajs.items()},
    randomness.purpose_key(key, randomness.PIECES, state.step),
    state.method_state,
  )


def selection(selector: Any, state: Any, count: int) -> float:
  """Total variation between a selector's next draw and a uniform one.

  Draws are repeated with other keys from the same state; what a uniform
  selector would show by chance is taken off. 0 for a selector that draws
  uniformly, 1 for one that never leaves a vanishing share of the prompts.
  """

  state = jax.tree.map(jnp.asarray, state)
  size = max(x.size for x in jax.tree.leaves(state))

  def distance(selector, state, seed):
    def draw(key):
      return selector.select(state, key, count=count)[0]

    keys = jax.random.split(jax.random.key(seed), DRAWS)
    drawn = np.asarray(jax.jit(lambda keys: jax.lax.map(draw, keys))(keys))
    seen = np.bincount(drawn.ravel(), minlength=size) / drawn.size
    return 0.5 * float(np.abs(seen - 1 / size).sum())

  uniform = ShuffledPass()
  by_chance = distance(uniform, uniform.init(size), 1)
  return max(0.0, distance(selector, state, 0) - by_chance)


def acts(results: dict[str, Any]) -> bool:
  """Returns whether a number of a method and its baseline shows a difference.

  results: cos and ratio of the gradients; the shares rows_changed,
    groups_dropped and selection. More than TOLERANCE counts.
  """
  away = (
    1.0 - results['cos'],
    abs(1.0 - results['ratio']),
    results['rows_changed'],
    results['groups_dropped'],
    results['selection'],
  )
  return max(away) > TOLERANCE
