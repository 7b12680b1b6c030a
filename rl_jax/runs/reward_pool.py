"""The processes that judge a run's responses or play its episodes."""

import functools
from typing import Any

from rl_jax.config import ExperimentConfig
from rl_jax.judging import reward_names
from rl_jax.verification.pool import VerifierPool
from rl_jax.verification.sessions import SessionPool


def make_pool(
  config: ExperimentConfig, task: Any, split: str | None
) -> VerifierPool | SessionPool:
  """A pool by `config.verifier`, for a task that judges those of the
  configuration.

  split: whose first prompt shows the components of rewards. What episodes
    return is known once one has ended, so their pool checks it then.

  Raises:
    ValueError: reward_weights names a component that rewards do not have, or a
      reward function cannot judge.
  """
  settings = config.verifier
  limits = {
    'num_workers': settings.num_workers,
    'timeout_seconds': settings.timeout_seconds,
    'memory_limit_bytes': settings.memory_limit_bytes,
    'limits': settings.limits,
    'rates': settings.rates,
  }
  make = functools.partial(
    VerifierPool, on_timeout=settings.on_timeout, **limits
  )
  reward_names.check_functions(config.task, split, make)
  if config.rollout.turns is not None:
    return SessionPool(task, **limits)
  pool = make(task)
  try:
    reward_names.check(config.task, split, pool, make)
  except BaseException:
    pool.close()
    raise
  return pool
