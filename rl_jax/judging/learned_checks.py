"""Checks whether learned rewards and judges have a place in a run."""

from collections.abc import Iterable
from typing import Any

from rl_jax.models.judge_source import PAIRS, Judge
from rl_jax.models.reward_source import RewardModel
from rl_jax.rollouts.wrappers.greedy_response import GreedyResponse
from rl_jax.tasks import base


def check_learned(config: Any) -> None:
  """Raises ValueError, of an ExperimentConfig, naming the field."""
  models, judges, rollout = config.reward_models, config.judges, config.rollout
  taken = {base.OUTCOME, *config.task.reward_weights}
  taken = _named(models, RewardModel, 'reward_models', taken)
  _named(judges, Judge, 'judges', taken)
  if (models or judges) and rollout.recorded_prompts == rollout.num_prompts:
    raise ValueError(
      'reward_models and judges score samples, and rollout.recorded_prompts = '
      f'{rollout.recorded_prompts} leaves none: rewards of data are those of '
      f'the '
      'data'
    )
  if models and config.method.wrapper.reads_rewards:
    raise ValueError(
      f'method.rollout.{type(config.method.rollout).__name__} decides by '
      'rewards on the host, which learned rewards never reach: remove '
      'reward_models'
    )
  _check_pairs(config)


def _check_pairs(config: Any) -> None:
  """Raises ValueError if win rates would be of rows that are not a whole group.

  They are how often a response beats the others that its question knew of.
  """
  sources = {
    f'{field}.{one.name}': one
    for field, every in (
      ('reward_models', [x for x in config.reward_models if x.separator]),
      ('judges', [x for x in config.judges if x.form == PAIRS]),
    )
    for one in every
    if one.weight
  }
  if not sources:
    return
  found, piece = ', '.join(sources), config.method.rollout
  if config.rollout.window_tokens is not None:
    raise ValueError(
      f'rollout.window_tokens = {config.rollout.window_tokens} with {found}, '
      'which compares whole responses of a group, and rows of a group end in '
      'different iterations: set rollout.window_tokens to null'
    )
  wrapper = config.method.wrapper
  widens = wrapper.widens > 1 and wrapper.rivals is None
  if wrapper.reads_rewards or widens or isinstance(piece, GreedyResponse):
    raise ValueError(
      f'method.rollout.{type(piece).__name__} judges rows in groups that are '
      f'not those of the update, and {found} compares the rows of a group: '
      'their win rates have nothing in common; give every response a score of '
      'its own, or set its weight to 0'
    )
  weights = {
    **config.task.reward_weights,
    **{one.name: one.weight for one in (*config.reward_models, *config.judges)},
  }
  own = {one.name for one in sources.values()}
  others = [name for name, x in weights.items() if x and name not in own]
  for path, one in config.method.pieces():
    one.check_win_rates(f'method.{path}', list(sources), others)


def _named(sources: Iterable[Any], kind: type, field: str, taken: set[str]):
  """The names with those of the sources, none of which has two meanings."""
  seen = set(taken)
  for one in sources:
    if not isinstance(one, kind):
      raise ValueError(f'{field} holds {one!r}, which is not a {kind.__name__}')
    if one.name in seen:
      raise ValueError(
        f'{field}: the name {one.name!r} is taken by another component; they '
        f'are {sorted(seen)}'
      )
    seen.add(one.name)
  return seen
