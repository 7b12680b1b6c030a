"""The learning rate by optimizer step, from a few fields of a configuration."""

from collections.abc import Callable, Mapping
import inspect
from typing import Any

import jax
import optax

from rl_jax.overrides import unknown_name

# Own schedules, and the arguments they take with their defaults.
OWN: dict[str, dict[str, float]] = {
  'constant': {},
  'linear': {'end_fraction': 0.0},
  'cosine': {'end_fraction': 0.0},
  'wsd': {'decay_fraction': 0.2, 'end_fraction': 0.0},
}
_PEAK = ('peak_value', 'value', 'init_value')  # where the rate of optax goes
_STEPS = ('decay_steps', 'transition_steps')


def check(name: str, arguments: dict[str, Any]) -> None:
  """Raises ValueError for an unknown schedule or argument, with the nearest."""
  if name not in OWN and name not in _factories():
    text = unknown_name('schedule', name, [*OWN, *_factories()])
    raise ValueError(f'optimizer.schedule: {text}')
  known = OWN[name] if name in OWN else _parameters(name)
  for argument, value in arguments.items():
    if argument not in known:
      text = unknown_name(f'argument of {name!r}', argument, known)
      raise ValueError(f'optimizer.schedule_arguments: {text}')
    if name in OWN and not (_is_number(value) and 0 <= value <= 1):
      raise ValueError(
        f'optimizer.schedule_arguments: {argument} = {value!r} is outside '
        '[0.0, 1.0]'
      )


def needs_steps(name: str, arguments: dict[str, Any]) -> bool:
  """Returns whether the schedule depends on the number of steps of the run."""
  if name in OWN:
    return name != 'constant'
  return any(k in _required(name) and k not in arguments for k in _STEPS)


def make(
  name: str,
  arguments: dict[str, Any],
  peak: float | jax.Array,
  steps: int,
) -> optax.Schedule:
  """Rate by step, from `peak` on.

    constant  peak
    linear    from peak to end_fraction peak at `steps`
    cosine    the same along half a cosine
    wsd       peak, then as linear during the last decay_fraction of `steps`
              (warmup-stable-decay, Hu et al. 2024, arXiv:2404.06395)

  Any other name is a factory of optax.schedules, called with `arguments`, peak
  as its rate, and `steps` where it needs a number of steps and has none.

  Raises ValueError if optax refuses the arguments.
  """
  if name in OWN:
    values = {**OWN[name], **arguments}
    return _own(name, values, peak, steps)
  values = {k: _integer_keys(v) for k, v in arguments.items()}
  for parameter in _STEPS:
    if parameter in _required(name):
      values.setdefault(parameter, steps)
  slot = next(x for x in _PEAK if x in _signature(name))
  try:
    return _factories()[name](**{slot: peak}, **values)
  except (TypeError, ValueError) as error:
    raise ValueError(f'optimizer.schedule = {name!r}: {error}') from error


def _own(name: str, values: Mapping[str, float], peak: Any, steps: int):
  if name == 'constant':
    return optax.constant_schedule(peak)
  end = peak * values['end_fraction']
  if name == 'linear':
    return optax.linear_schedule(peak, end, steps)
  if name == 'cosine':
    return optax.cosine_decay_schedule(peak, steps, values['end_fraction'])
  decay = max(1, round(steps * values['decay_fraction']))
  stable = max(0, steps - decay)
  return optax.join_schedules(
    [optax.constant_schedule(peak), optax.linear_schedule(peak, end, decay)],
    [stable],
  )


def _factories() -> dict[str, Callable[..., Any]]:
  """The schedules of optax that have a parameter for the peak rate, by name."""
  return {
    name: value
    for name, value in vars(optax.schedules).items()
    if inspect.isfunction(value)
    and not name.startswith('_')
    and set(_PEAK) & set(inspect.signature(value).parameters)
  }


def _signature(name: str):
  return inspect.signature(_factories()[name]).parameters


def _parameters(name: str):
  """Returns what may be given: the rate is optimizer.learning_rate."""
  slot = next(x for x in _PEAK if x in _signature(name))
  return [parameter for parameter in _signature(name) if parameter != slot]


def _required(name: str):
  return [key for key, x in _signature(name).items() if x.default is x.empty]


def _integer_keys(value: Any):
  """{'500': 0.1} as {500: 0.1}: a configuration has only text as keys."""
  if not isinstance(value, dict):
    return value
  return {int(key): number for key, number in value.items()}


def _is_number(value: Any):
  return isinstance(value, (int, float)) and not isinstance(value, bool)
