"""Any task, judged by functions of the user."""

from collections.abc import Mapping
import dataclasses
import inspect
from typing import Any

from rl_jax import user_modules
from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, wrapped
from rl_jax.tasks.base import Example


@dataclasses.dataclass(frozen=True)
@checked
class RewardFunctions(wrapped.Wrapped):
  """The prompts of a task, rewarded by functions of a file or module:

    RewardFunctions(task=Arithmetic(), functions={'my_file.py:short': 0.5})

  reward = task_weight * (the task's own reward) + sum_k weight_k * f_k

  A function takes (example, response), the text before the end token, and
  returns a number, or a dict of numbers: `reward` is what counts, the others
  are measured as NAME/KEY, and `outcome` replaces the task's (what evaluation
  counts as solved). The components are those of the task, and each function's
  reward by the function's name. A call that fails costs its own sample.

  functions: {'PATH.py:NAME', 'MODULE:NAME' or a function: its weight}.

  Raises: ValueError for what is not there, takes other arguments, cannot be
    found again by its name, or has the name of another component.
  """

  not_passed = ('reward_device', 'device_answers')

  task: Any
  functions: dict[Any, float] = dataclasses.field(hash=False)
  task_weight: float = ranged(0.0)

  def __post_init__(self):
    if not self.functions:
      raise ValueError('RewardFunctions.functions is empty')
    found = {}
    for function, weight in self.functions.items():
      reference = user_modules.reference(function)
      _check_arguments(reference)
      found[reference] = float(weight)
    object.__setattr__(self, 'functions', found)
    names = [_name(reference) for reference in found]
    taken = {base.OUTCOME, *getattr(self.task, 'reward_weights', ())}
    for name in names:
      if names.count(name) > 1 or name in taken:
        raise ValueError(
          f'RewardFunctions.functions: two components are named {name!r}'
        )

  @property
  def code_modules(self) -> tuple[str, ...]:
    """Modules of the functions; experiment.json records their files."""
    return tuple(reference.split(':')[0] for reference in self.functions)

  @property
  def reward_weights(self) -> dict[str, float]:
    """Those of the functions, and those of the task times task_weight."""
    own = getattr(self.task, 'reward_weights', {base.OUTCOME: 1.0})
    own = {name: self.task_weight * weight for name, weight in own.items()}
    return own | {_name(key): value for key, value in self.functions.items()}

  def prepare(self) -> None:
    """Imports the functions once, before workers are forked."""
    for reference in self.functions:
      user_modules.resolve(reference)
    if hasattr(self.task, 'prepare'):
      self.task.prepare()

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Components of the task and of the functions."""
    found = dict(self.task.reward(example, response))
    judged = {}
    for reference in self.functions:
      value = user_modules.resolve(reference)(example, response)
      for key, number in _components(reference, value).items():
        if key in judged or (key in found and key != base.OUTCOME):
          raise ValueError(f'{reference}: another component is named {key!r}')
        judged[key] = number
    return found | judged


def _components(reference, value) -> dict[str, Any]:
  """{name: reward, name/key: what else was measured}."""
  name = _name(reference)
  if not isinstance(value, Mapping):
    value = {'reward': value}
  if 'reward' not in value:
    raise ValueError(f"{reference} returned a dict without 'reward': {value!r}")
  for key, number in value.items():
    if isinstance(number, str) or not hasattr(number, '__float__'):
      raise ValueError(
        f'{reference} returned {type(number).__name__} as {key}: expected a '
        "number, or a dict of numbers with 'reward'"
      )
  named = {'reward': name, base.OUTCOME: base.OUTCOME}
  return {named.get(key, f'{name}/{key}'): x for key, x in value.items()}


def _check_arguments(reference):
  function = user_modules.resolve(reference)
  if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(
    function
  ):
    raise ValueError(
      f'{reference} is an async function or a generator: expected one that '
      'returns a number, or a dict of numbers'
    )
  try:
    inspect.signature(function).bind(None, '')
  except TypeError as error:
    raise ValueError(
      f'{reference} cannot be called as (example, response): {error}'
    ) from None
  except ValueError:  # a builtin without a signature
    pass


def _name(reference):
  return reference.split(':')[1]
