"""The check of rollout pieces whose rows are single responses."""

from typing import Any

from rl_jax.pieces.roles import RolloutWrapper


def refuse(
  wrapper: RolloutWrapper, does: str, rollout: Any, *fields: str
) -> None:
  """Raises ValueError for a rollout in which one of the fields is set.

  does: what the piece does to single responses. rollout: None passes.
  """
  for field in fields if rollout is not None else ():
    if value := getattr(rollout, field):
      raise ValueError(
        f'method.rollout: {type(wrapper).__name__} {does}, which does not go '
        f'with rollout.{field} = {value!r}'
      )
