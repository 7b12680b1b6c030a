"""Samples of the policy beside samples of an opponent."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.logits.policy_mixture import PolicyMixture
from rl_jax.pieces.ops import rivals
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.wrappers.guided import join_groups
from rl_jax.types import Array, Trajectories

# `trained` -> weights of the policy's and of the opponent's rows, and whether
# the former are valid at all.
_WEIGHTS = {
  'both': (1.0, 1.0, 1.0),
  'policy': (1.0, 0.0, 1.0),
  'opponent': (0.0, 1.0, 0.0),
}
_RIVALS = {
  'both': rivals.ALL,
  'policy': rivals.ACROSS,
  'opponent': rivals.OPPONENT,
}


@piece
class Against(RolloutWrapper):
  """G samples of the policy and G of an opponent: groups of 2 G rows.

  The opponent is the geometric mixture of the policy (1 - coef) and the
  reference (coef), token by token; 1 is the reference itself. With a decay the
  moving average of the policy stands for the reference. Its rows have
  opponent_B 1, and logp_old as the opponent drew them. trained: whose rows the
  losses see. With 'policy' the opponent's still count in shaping, but not in
  credit; with 'opponent' the policy's count nowhere.

  What compares responses (reward models and judges of pairs, judges of groups)
  reads the joined groups: with 'policy' each row against those of the other
  side, with 'both' against all, with 'opponent' the opponent's rows among
  themselves.
  Source: XPO and RSO (the reference), Nash-MD and IPO-MD (the mixture),
  Nash-EMA (the average); TRL xpo_trainer.py, nash_md_trainer.py (by digests).
  """

  coef: float = ranged(1.0, 0.0, 1.0)
  decay: float | None = ranged(None, 0.0, 1.0)  # of the average
  trained: str = chosen('both', tuple(_WEIGHTS))
  widens = 2  # see HintGuided

  @property
  def opponent(self) -> PolicyMixture:
    """Returns what its samples are drawn from."""
    return PolicyMixture(coef=self.coef, decay=self.decay)

  @property
  def rivals(self) -> str:
    """The pairs of the joined groups that are compared, see ops.rivals."""
    return _RIVALS[self.trained]

  @property
  def reads_reference(self) -> bool:
    """Returns whether the opponent is made of the reference."""
    return self.decay is None

  @property
  def policies(self) -> dict[str, Any]:
    """The average, if the opponent is made of it."""
    return {} if self.decay is None else self.opponent.policies

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups joined with the opponent's rows, its round)."""
    other, more = sampler.sample(done.examples, done.indices, (self.opponent,))
    weights = np.asarray(_WEIGHTS[self.trained], np.float32)
    return sampler.run(join_opponent, traj, other, weights), [more]


def join_opponent(
  own: Trajectories, other: Trajectories, weight_3: Array
) -> Trajectories:
  """Groups of both; weight_3: of own rows, of others, validity of own rows."""
  every_N = jnp.ones(own.num_prompts)
  joined = join_groups(own, other, every_N > 0)
  opponent_B = joined.extras['foreign_B']
  weight_B = jnp.where(opponent_B > 0, weight_3[1], weight_3[0])
  valid_B = jnp.where(opponent_B > 0, 1.0, weight_3[2])
  return joined.replace(
    weight_B=joined.weight_B * weight_B,
    valid_B=joined.valid_B * valid_B,
    extras={**joined.extras, 'opponent_B': opponent_B},
  )
