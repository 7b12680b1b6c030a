"""Wrappers that give each sample of a group its own context."""

from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.wrappers import single_responses


class OwnContexts(RolloutWrapper):
  """The base of rollout pieces whose samples are drawn from several prompts.

  Every context is encoded by itself, so that the prompts of a rollout take G
  times the memory and time of shared ones.
  """

  def check(self, context: CheckContext) -> None:
    """Raises ValueError for rollouts whose rows are not single responses."""
    single_responses.refuse(
      self,
      'draws each sample from its own prompt',
      context.rollout,
      'turns',
      'window_tokens',
      'staleness',
      'speculative',
    )
