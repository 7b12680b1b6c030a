"""GiGPO: steps of a group that begin in the same state are compared, too."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide, safe_sqrt
from rl_jax.pieces.ops.masking import ungroup as ungrouped
from rl_jax.pieces.ops.turns import TurnView, turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, Metrics, Trajectories, static


def _known(view: TurnView, traj: Trajectories) -> Array:
  """1 on turns of valid rows whose state is known, [B, K]."""
  known_BK = view.played_BK * (traj.valid_B > 0)[:, None]
  return known_BK * (view.state_BK >= 0)


def _numbers(state_GK: Array, known_GK: Array) -> tuple[Array, int]:
  """(a number below the second result for each turn of a group, that)."""
  # States and actions of a group are numbered together.
  width = 2 * state_GK.size + 2
  return jnp.where(known_GK > 0, state_GK, width - 1).ravel(), width


def _visits(state_GK: Array, known_GK: Array) -> Array:
  """Turns of a group by state, [C]."""
  return jax.ops.segment_sum(known_GK.ravel(), *_numbers(state_GK, known_GK))


@piece
class StepGroups(Credit):
  """A_E + weight (G_k - mean of G over the turns of the group in this state).

    G_k = r_k + gamma G_{k+1}, of the record's rewards of turns

  A_E is what comes in, a number per row. Every visit of a state counts; a state
  that is met once, or unknown, adds nothing. With `scale` the difference is
  divided by the standard deviation (ddof 1) of the state's returns plus eps.
  Episodes count once in A_E; the authors' code weighs them by their steps.
  Source: "Group-in-Group Policy Optimization for LLM Agent Training" (GiGPO);
  verl-agent gigpo/core_gigpo.py.
  """

  weight: float = ranged(1.0, 0.0)  # omega of the paper
  gamma: float = ranged(0.95, 0.0, 1.0)  # discount per turn
  scale: bool = static(default=False)
  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    view = turn_view(traj)
    reward_BK = view.rewards(traj.reward_B)
    if traj.turns is not None:
      reward_BK = traj.turns.reward_BK
    return_BK = view.returns(reward_BK, self.gamma)
    grouped = (
      by_group(x, traj.group_size)
      for x in (return_BK, view.state_BK, _known(view, traj))
    )
    step_BK = ungrouped(jax.vmap(self._compared)(*grouped))
    return CreditOut(view.on_tokens(credit_B[:, None] + self.weight * step_BK))

  def measure(self, traj: Trajectories) -> Metrics:
    """The share of states of a group that are met once: at 1 this is GRPO."""
    view = turn_view(traj)
    grouped = (
      by_group(x, traj.group_size) for x in (view.state_BK, _known(view, traj))
    )
    count_NC = jax.vmap(_visits)(*grouped)
    alone = safe_divide((count_NC == 1).sum(), (count_NC > 0).sum())
    return {'credit/singleton_fraction': alone}

  def _compared(self, return_GK: Array, state_GK: Array, known_GK: Array):
    """Centred returns of the turns of one group, by state."""
    state_S, width = _numbers(state_GK, known_GK)
    known_S, return_S = known_GK.ravel(), return_GK.ravel()

    def total(x_S: Array):
      return jax.ops.segment_sum(x_S * known_S, state_S, width)

    # Off the smallest, so that equal returns have exactly 0.
    low_C = jax.ops.segment_min(return_S, state_S, width)
    shifted_S = jnp.where(known_S > 0, return_S - low_C[state_S], 0.0)
    count_C = _visits(state_GK, known_GK)
    mean_C = safe_divide(total(shifted_S), count_C)
    centered_S = jnp.where(count_C[state_S] > 1, shifted_S - mean_C[state_S], 0)
    centered_S = centered_S * known_S
    if self.scale:
      square_C = total(centered_S**2)
      std_C = safe_sqrt(safe_divide(square_C, jnp.maximum(count_C - 1, 0)))
      centered_S = centered_S / (std_C[state_S] + self.eps)
    return centered_S.reshape(return_GK.shape)
