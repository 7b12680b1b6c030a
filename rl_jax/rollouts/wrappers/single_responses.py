"""The check of rollout pieces whose rows are single responses."""

from typing import Any

from rl_jax.pieces.roles import RolloutWrapper


def refuse(
  wrapper: RolloutWrapper, does: str, rollout: Any, *fields: str
) -> None:
  """Raises ValueError for a rollout in which one of the fields is set.

  does: what the piece does to single responses. rollout: None passes.
  """
  if rollout is None:
    return
  given = {
    'turns': rollout.turns,
    'window_tokens': rollout.window_tokens,
    'staleness': rollout.staleness,
    'speculative': rollout.speculative,
  }
  for field in fields:
    if given[field]:
      raise ValueError(
        f'method.rollout: {type(wrapper).__name__} {does}, which does not go '
        f'with rollout.{field} = {given[field]!r}'
      )
