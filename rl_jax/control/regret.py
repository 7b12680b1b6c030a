"""Regret as a loss: sequences of losses are given, so no rollout is needed."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control import rows
from rl_jax.control.unroll import Steps
from rl_jax.control.worlds import Experts
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.pieces.statistics import ActionProbs
from rl_jax.types import Array, Trajectories

LOSSES = 'losses_BTA'


def regret(loss_BTA: Array, prob_BTA: Array) -> Array:
  """sum_t <l_t, pi_t> - min_a sum_t l_t[a], [B]."""
  played_B = (loss_BTA * prob_BTA).sum(axis=(1, 2))
  return played_B - loss_BTA.sum(axis=1).min(axis=1)


def soft_worst(regret_N: Array, k: float | Array, power: float = 1.0) -> Array:
  """sum_j h(R_j) f(R_j) / sum_i f(R_i), h(x) = max(x, 0)^power, f = exp(k x).

  The mean at k = 0, and the worst of the N as k grows.
  """
  weight_N = jax.nn.softmax(k * regret_N)
  return (weight_N * jnp.maximum(regret_N, 0.0) ** power).sum()


@piece
class RegretLoss(Loss):
  """L = soft_worst of the regrets of the rows that are drawn together.

  The actions are the tokens of `actions`; losses of all of them at every place
  are in traj.extras. Adding a constant to the losses of a step changes nothing.
  Source: "Do LLM Agents Have Regret?", from its abstract and from memory; h and
  f are not verified.
  """

  actions: tuple[int, ...] = (0, 1)
  k: float = ranged(0.0, 0.0)
  power: float = ranged(1.0, 0.0, open_low=True)
  reads = {LOSSES: 'the losses of all actions at every place'}

  @property
  def needs(self) -> tuple[Any, ...]:
    """Probabilities of the actions."""
    return (ActionProbs(actions=self.actions),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    loss_BTA = row_inputs.read(ctx.traj, LOSSES, self.reads[LOSSES])
    regret_B = regret(loss_BTA, ctx.stats['action_probs'])
    value = soft_worst(regret_B, self.k, self.power)
    return LossOut(value, {'regret/mean': regret_B.mean()})


def trajectories(world: Experts, loss_BTA: Array) -> Trajectories:
  """Rows in which the losses are read, and nothing that was played.

  Losses do not depend on actions, so one forward pass gives all pi_t.
  """
  B, T, A = loss_BTA.shape
  seen_BTA = jnp.pad(loss_BTA[:, :-1], ((0, 0), (1, 0), (0, 0)))
  zeros_BT = jnp.zeros((B, T))
  off_BT = jnp.zeros((B, T), bool)
  steps = Steps(
    obs=seen_BTA,
    action=jnp.zeros((B, T), jnp.int32),
    reward=zeros_BT,
    next_obs=None,
    done=off_BT,
    last=off_BT,
    episode=jnp.zeros((B, T), jnp.int32),
    optimal=jnp.full((B, T), -1, jnp.int32),
    regret=zeros_BT,
    valid=jnp.ones((B, T)),
  )
  traj = rows.trajectories(world, steps)
  scored_BTA = jnp.pad(loss_BTA, ((0, 0), (1, 0), (0, 0)))
  return traj.replace(extras={LOSSES: scored_BTA})
