"""Checks before a run whether a task can be judged as it says.

Rewards have the components of reward_weights, and reward functions in the forms
of other libraries have what they need.
"""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import checks
from rl_jax.tasks import Mixture, RewardFunctions, reward_forms
from rl_jax.tasks.reward_functions import NotApplicableError
from rl_jax.verification.pool import VerifierPool


def check(
  task: Any,
  split: str | None,
  pool: VerifierPool,
  alone: Callable[[Any], VerifierPool],
) -> None:
  """Raises ValueError for a weight of a component that rewards do not have.

  A right response to the first prompt of the split is judged in the pool; a
  task without prompts or targets says nothing. Functions of RewardFunctions are
  not called: their task, and parts of a Mixture, are asked by themselves, in
  the pool `alone(task)`, and only if their weights name what those of their
  class do not.
  """
  inner = _inner(task)
  if not inner:
    _ask(task, split, pool)
  for one in inner:
    if _inner(one):
      check(one, split, pool, alone)
    elif not {*one.reward_weights} <= _of_class(one):
      with contextlib.closing(alone(one)) as own:
        _ask(one, split, own)


def check_functions(
  task: Any, split: str | None, alone: Callable[[Any], VerifierPool]
) -> None:
  """Raises ValueError for a function of RewardFunctions that cannot judge.

  It needs a column that no row has; or, in the form of another library, it
  fails on a right response to the first prompt of the split (the prompt itself
  where the task has no targets), judged in the pool `alone(task)`.
  """
  if isinstance(task, RewardFunctions):
    if split is not None and task.num_prompts(split):
      task.check_columns(split)
      if task.has_foreign:
        _try(task, split, alone)
    task = task.task
  if dataclasses.is_dataclass(task):
    for value in checks.values(task).values():
      for one in value if isinstance(value, tuple) else (value,):
        check_functions(one, split, alone)


def _try(task, split, alone):
  example = task.example(split, 0)
  with contextlib.closing(alone(task)) as pool:
    text = _target(task, example) or example.prompt
    outcome = pool.try_one(example, text)
  lines = outcome.detail.strip().splitlines()
  if outcome.kind != 'error' or NotApplicableError.__name__ in lines[-1]:
    return
  places = [line.strip() for line in lines if line.startswith('  File "')]
  raise ValueError(
    f'the reward of a right response to the first prompt fails: {lines[-1]} '
    f'({places[-1] if places else "no place known"}); {reward_forms.WANTED}'
  )


def _target(task, example):
  """The right response, None for a task without targets."""
  try:
    return task.target(example)
  except Exception:  # of users, who need none without supervised training
    return None


def check_on_device(task: Any, tokenizer: Any, max_tokens: int) -> None:
  """The same of `reward_device`, which is traced for one response."""
  if not (task.supports('reward_device') and task.num_prompts('train')):
    return
  answers = task.device_answers([task.example('train', 0)], tokenizer)
  found = jax.eval_shape(
    lambda *arrays: task.reward_device(*arrays, tokenizer),
    jax.ShapeDtypeStruct((1, max_tokens), jnp.int32),
    jax.ShapeDtypeStruct((1,), jnp.int32),
    *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in answers),
  )
  missing = sorted(set(task.reward_weights) - set(found))
  if missing:
    raise ValueError(
      f'{type(task).__name__}: reward_weights names {missing}, but the '
      f'components are {sorted(found)}'
    )


def _inner(task):
  """Tasks whose own weights are not those of the task."""
  if isinstance(task, RewardFunctions):
    return (task.inner,)
  if isinstance(task, Mixture):
    return tuple(part.task for part in task.parts)
  return ()


def _ask(task, split, pool):
  if split is None or not task.supports('target'):
    return
  if not task.num_prompts(split):
    return
  example = task.example(split, 0)
  if (target := _target(task, example)) is not None:
    pool.check_weights(example, target)


def _of_class(task):
  """Names of the weights that a task has unless others are given."""
  if not dataclasses.is_dataclass(task):
    return set()
  for field in dataclasses.fields(task):
    if field.name != 'reward_weights':
      continue
    known = field.default
    if field.default_factory is not dataclasses.MISSING:
      known = field.default_factory()
    return {*known} if isinstance(known, Mapping) else set()
  return set()
