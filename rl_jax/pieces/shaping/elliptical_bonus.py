"""RepExp: a bonus for responses whose representation is unlike the others."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_mean,
  safe_divide,
  ungroup,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, Trajectories


@piece
class EllipticalBonus(Shaping):
  """R_k + coef * b_k, b_k the leverage of k among its group.

    x_k = mean hidden state over trained tokens, minus the group's mean
    b_k = x_k' (ridge I + sum_j x_j x_j')^-1 x_k          'leverage'
    b_k / (1 - b_k): the sum without k                     'leave_one_out'

  0 in groups without a right row.
  Computed from the [G, G] inner products, which is the same number for any
  width, so the random projection of the code (to 32 sizes, in float64) is not
  needed: with P the centring of n valid rows, K = P K P and any c > 0,
    b_k = 1 - 1 / n - ridge [P (K + ridge I + c (I - P))^-1 P]_kk
  whose last term is not a difference of large numbers. Where K is far above the
  ridge that term vanishes: all rows have 1 - 1 / n to float32 rounding, and the
  bonus tells them no longer apart; set ridge near the x' x of the model. Hidden
  states are those of the sampling policy, where the code has a frozen model.
  Source: "Representation-Based Exploration for Language Models" (RepExp);
  verl-recipe rep_exp, elliptical_reward_model_worker.py.
  """

  coef: float = ranged(0.01, 0.0)  # reward per unit of leverage
  # In squared units of the hidden state.
  ridge: float = ranged(0.01, 0.0, open_low=True)
  correct_above: float = 0.5  # see row_inputs.right_B
  kind: str = chosen('leverage', ('leverage', 'leave_one_out'))
  needs = ('hidden',)
  min_group_size = 2

  def _lost(self, traj: Trajectories) -> tuple[Array, Array]:
    """(1 / n, ridge [P (...)^-1 P]_kk), what b lacks of 1, each [N, G].

    All of 1 where x is 0: in groups of equal rows, and on invalid ones.
    """
    hidden_BTD = row_inputs.read(traj, 'hidden')
    mean_BD = masked_mean(hidden_BTD, traj.mask_BT[:, :, None], axis=1)
    valid_NG1 = by_group(traj.valid_B, traj.group_size)[:, :, None]
    mean_NGD = by_group(mean_BD, traj.group_size)
    x_NGD = masked_center(mean_NGD, valid_NG1, axis=1)
    gram_NGG = jnp.einsum('ngd,nhd->ngh', x_NGD, x_NGD)
    size_N11 = jnp.trace(gram_NGG, axis1=1, axis2=2)[:, None, None]
    count_N11 = jnp.maximum(valid_NG1.sum(1, keepdims=True), 1.0)
    valid_N1G = jnp.swapaxes(valid_NG1, 1, 2)
    eye_1GG = jnp.eye(traj.group_size)[None]
    center_NGG = valid_NG1 * eye_1GG - valid_NG1 * valid_N1G / count_N11
    # Without c the directions that centring removes have 1 / ridge.
    c_N11 = size_N11 / count_N11 + self.ridge
    whole_NGG = gram_NGG + self.ridge * eye_1GG + c_N11 * (eye_1GG - center_NGG)
    root_NGG = jnp.linalg.cholesky(whole_NGG)
    solved_NGG = jax.lax.linalg.triangular_solve(
      root_NGG, center_NGG, left_side=True, lower=True
    )
    lost_NG = self.ridge * (solved_NGG**2).sum(1)
    alone_NG = (valid_NG1 / count_N11)[:, :, 0]
    apart_NG = (size_N11[:, :, 0] > 0) & (valid_NG1[:, :, 0] > 0)
    return alone_NG, jnp.where(apart_NG, lost_NG, 1.0 - alone_NG)

  def _bonus(self, traj: Trajectories) -> Array:
    """b [N, G]; 0 on invalid rows."""
    alone_NG, lost_NG = self._lost(traj)
    leverage_NG = jnp.maximum(1.0 - alone_NG - lost_NG, 0.0)
    if self.kind == 'leave_one_out':
      return safe_divide(leverage_NG, alone_NG + lost_NG)
    return leverage_NG

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    right_B = row_inputs.right_B(traj, self.correct_above)
    solved_N1 = by_group(right_B, traj.group_size).any(1, keepdims=True)
    bonus_NG = jnp.where(solved_N1, self._bonus(traj), 0.0)
    return CreditOut(reward_B + self.coef * ungroup(bonus_NG))
