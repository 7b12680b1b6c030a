"""HiPER: advantages of sub-goals, of the actions in them, and of switching."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops import hierarchy as ops
from rl_jax.pieces.ops.masking import (
  is_rounding,
  masked_center,
  masked_max,
  masked_mean,
  safe_sqrt,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.types import static

_EPS = 1e-8  # of the authors


@piece
class HierarchicalGAE(Credit):
  """A_t = A_high on sub-goal, A_low on action, A_term on switch tokens.

    A_low   GAE over turns with V_low; at the end of a segment the next value is
            V_high of the next one, and the recursion begins again
    A_high  GAE over segments: R_k + g^n V_high' - V_high, then g^n lam_segment
    A_term  (rewards to the end of the segment + V_high of the next) - V_term

  A segment is the turns of one sub-goal, whose tokens count in its first turn
  only. All tokens of a turn without an action have A_low. After an episode that
  has not finished the values are 0, or with `bootstrap` its own last V_low and
  V_high, so that failure at the limit of turns lowers no value; the authors
  have it on for ALFWorld and off for WebShop and in their defaults.
  normalise: each level has mean 0 and deviation 1 over the turns of valid rows
  that use it, and is 0 where these differ by no more than float32 rounding.
  The heads 0, 1, 2 are V_high at the first token of a segment, V_low at the
  first action token of a turn, V_term at its first token.
  Source: "HiPER: Hierarchical Reinforcement Learning with Explicit Credit
  Assignment for Large Language Model Agents"; JonP07/HiPER-agent core_hae.py.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  lam_turn: float = ranged(1.0, 0.0, 1.0)
  lam_segment: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  normalise: bool = static(default=True)
  needs = ('value_heads',)
  num_values = 3
  reads = ops.READS

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    h = ops.hierarchy(traj)
    lams = self.lam_turn, self.lam_segment
    rewards = h.view.rewards(reward)
    levels_BKH, values_BKH = ops.levels(
      h, rewards, traj, self.gamma, *lams, self.bootstrap
    )
    valid_B1 = (traj.valid_B > 0).astype(jnp.float32)[:, None]
    total_BT = jnp.zeros_like(traj.mask_BT)
    for i, part in enumerate((ops.SUBGOAL, ops.ACTION, ops.SWITCH)):
      level_BK = levels_BKH[..., i]
      used_BK = (h.view.total(h.span_BT == part) > 0).astype(jnp.float32)
      if part == ops.SUBGOAL:
        used_BK *= h.start_BK
      if self.normalise:
        counted_BK = used_BK * valid_B1
        apart_BK = masked_center(level_BK, counted_BK)
        std = safe_sqrt(masked_mean(apart_BK**2, counted_BK))
        # Differences of returns and values are rounded as these are.
        size_BK = jnp.abs(level_BK) + jnp.abs(values_BKH[..., i])
        flat = is_rounding(std, masked_max(size_BK, counted_BK))
        level_BK = jnp.where(flat, 0.0, used_BK * apart_BK / (std + _EPS))
      total_BT += h.view.on_tokens(level_BK) * (h.span_BT == part)
    return CreditOut(total_BT)


@piece
class HierarchicalReturn(ValueTarget):
  """Targets of the three heads at their places: A + V of each level, else V.

  Before normalisation; see HierarchicalGAE.
  Source: as HierarchicalGAE.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)
  lam_turn: float = ranged(1.0, 0.0, 1.0)
  lam_segment: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  needs = ('value_heads',)
  num_values = 3
  reads = ops.READS

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> returns [B, T, 3]."""
    reward, traj = ctx.credit, ctx.traj
    h = ops.hierarchy(traj)
    lams = self.lam_turn, self.lam_segment
    rewards = h.view.rewards(reward)
    found = ops.levels(h, rewards, traj, self.gamma, *lams, self.bootstrap)
    target_BTH = jnp.stack(
      [h.view.on_tokens((found[0] + found[1])[..., i]) for i in range(3)], -1
    )
    return CreditOut(
      jnp.where(h.places() > 0, target_BTH, traj.values_BTH[..., :3])
    )
