"""Wrappers that give each sample of a group its own context."""

from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import RolloutWrapper


class OwnContexts(RolloutWrapper):
  """The base of rollout pieces whose samples are drawn from several prompts.

  Every context is encoded by itself, so that the prompts of a rollout take G
  times the memory and time of shared ones.
  """

  def check(self, context: CheckContext) -> None:
    """Raises ValueError for rollouts whose rows are not single responses."""
    rollout = context.rollout
    if rollout is None:
      return
    name = type(self).__name__
    given = {
      'rollout.turns': rollout.turns,
      'rollout.window_tokens': rollout.window_tokens,
      'rollout.staleness': rollout.staleness,
      'rollout.speculative': rollout.speculative,
    }
    for field, value in given.items():
      if value:
        raise ValueError(
          f'method.rollout: {name} draws each sample from its own prompt, '
          f'which does not go with {field} = {value!r}'
        )
