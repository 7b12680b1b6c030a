"""Whether learned rewards and judges have a place in a run."""

from collections.abc import Iterable
from typing import Any

from rl_jax.models.judge_source import Judge
from rl_jax.models.reward_source import RewardModel
from rl_jax.tasks import base


def check_learned(config: Any) -> None:
  """Raises ValueError, of an ExperimentConfig, naming the field."""
  models, judges, rollout = config.reward_models, config.judges, config.rollout
  taken = {base.OUTCOME, *config.task.reward_weights}
  taken = _named(models, RewardModel, 'reward_models', taken)
  _named(judges, Judge, 'judges', taken)
  if (models or judges) and rollout.logged_prompts == rollout.num_prompts:
    raise ValueError(
      'reward_models and judges score samples, and rollout.logged_prompts = '
      f'{rollout.logged_prompts} leaves none: rewards of data are those of the '
      'data'
    )
  if models and config.method.wrapper.reads_rewards:
    raise ValueError(
      f'method.rollout.{type(config.method.rollout).__name__} decides by '
      'rewards on the host, which learned rewards never reach: remove '
      'reward_models'
    )


def _named(sources: Iterable[Any], kind: type, field: str, taken: set[str]):
  """The names with those of the sources, none of which has two meanings."""
  seen = set(taken)
  for one in sources:
    if not isinstance(one, kind):
      raise ValueError(f'{field} holds {one!r}, which is no {kind.__name__}')
    if one.name in seen:
      raise ValueError(
        f'{field}: the name {one.name!r} is taken by another component; they '
        f'are {sorted(seen)}'
      )
    seen.add(one.name)
  return seen
