"""StarPO-S: only the groups whose rewards differ most are trained."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import ROUNDING, by_group, masked_var
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import CreditContext, CreditOut, GroupFilter


@piece
class TopSpread(GroupFilter):
  """Keeps (1) the floor(fraction N) groups with the largest std, drops others.

  The std is over the valid rewards of a group before shaping, ddof 1. At least
  one group is kept, and so are groups that equal the last kept one. It compares
  the groups of one rollout, so rollout.max_rounds must be 1; fraction 1 keeps
  all.
  Source: "RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn
  Reinforcement Learning"; RAGEN-AI/RAGEN agent_trainer.py (its first version).
  """

  fraction: float = ranged(0.25, 0.0, 1.0, open_low=True)
  min_group_size = 2
  compares_groups = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if groups of several rollouts would be compared."""
    rollout = context.rollout
    if rollout is None:
      return
    if rollout.max_rounds != 1:
      raise ValueError(
        'method.group_filter: TopSpread keeps a part of every rollout, but '
        f'rollout.max_rounds = {rollout.max_rounds} draws more groups until '
        'enough are kept: set rollout.max_rounds=1'
      )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Weights [N]."""
    traj = ctx.traj
    reward_NG = by_group(traj.reward_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    var_N = masked_var(reward_NG, valid_NG, axis=1, ddof=1)
    count = jnp.floor(self.fraction * len(var_N) + 1e-6)  # of a rounded product
    place = jnp.maximum(count, 1).astype(jnp.int32) - 1
    least = jnp.sort(var_N, descending=True)[place]
    # Equal rewards in another order may have another sum of squares.
    return CreditOut((var_N >= least * (1.0 - ROUNDING)).astype(jnp.float32))
