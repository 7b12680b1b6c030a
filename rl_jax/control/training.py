"""A whole run as one scan: rows of the policy or of data, then an update."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.learning import batch as batch_lib
from rl_jax.learning import optimizers, update
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.types import Array, Metrics, TrainState, Trajectories

Rows = Callable[[Any, Array], Trajectories]


def fit(
  forward: Forward,
  method: Method,
  rows: Rows,
  params: Any,
  key: Array,
  optimizer: OptimizerConfig,
) -> tuple[Any, Metrics]:
  """Parameters after optimizer.total_steps updates, and metrics [steps].

  rows: (parameters, key) -> the rows of a step, from a policy that acts or from
  a data set. Methods with credit get advantages from it, others are supervised.
  To be jitted; `jax.vmap` over (params, key) trains several seeds at once.

  Raises: ValueError without optimizer.total_steps.
  """
  if optimizer.total_steps is None:
    raise ValueError('OptimizerConfig.total_steps = None: fit needs a number')
  transformation = optimizers.make_optimizer(optimizer)
  state = TrainState(
    step=jnp.int32(0),
    params=params,
    opt_state=transformation.init(params),
    method_state=method.init_state(0),
    skipped=jnp.int32(0),
  )

  def one(state: TrainState, number: Array) -> tuple[TrainState, Metrics]:
    traj = rows(state.params, randomness.purpose_key(key, 0, number))
    reward = traj.reward_B.mean()
    if method.credit:
      traj, states, _ = batch_lib.make_batch(method, traj, state.method_state)
      state = state.replace(method_state=states)
    batch = update.Batch(frozen={}, method=method, traj=traj, key=key)
    state, metrics = update.update_minibatch(
      forward,
      state,
      batch,
      jnp.arange(traj.num_prompts),
      optimizer=transformation,
      reuse_scores=False,
    )
    return state, {
      'loss': metrics['train/loss'],
      'return': reward,
      'skipped': metrics['train/skipped'],
    }

  steps = jnp.arange(optimizer.total_steps)
  state, metrics = jax.lax.scan(one, state, steps)
  return state.params, metrics
