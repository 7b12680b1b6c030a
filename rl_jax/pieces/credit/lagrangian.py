"""Constrained RLHF: multipliers hold every reward component at a threshold."""

from typing import ClassVar

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_mean,
  masked_sum,
  safe_sqrt,
  ungroup,
  whiten,
)
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories, static

SQUASHES = {'sigmoid': jax.nn.sigmoid, 'tanh': jnp.tanh, 'none': lambda x: x}


@piece
class Lagrangian:
  """A = (K - sum phi) A_kl + sum_i phi_i A_i, phi_i = squash(lambda_i).

    A_i   = component i minus its group mean, whitened over the valid rows
    A_kl  = the same of -sum_t (logp_old - logp_ref)_t
    'sigmoid': mu-PPO, r_i >= threshold; 'tanh': xi-PPO, r_i = threshold;
    'none': A = A_kl + sum lambda_i A_i with lambda >= 0

  Then lambda takes one descent step, with momentum and a bound on the norm of
  the gradient, on sum_i phi_i (mean r_i - threshold_i). Replaces the reward.
  The group mean replaces the component's value head. State: lambda, momentum.
  Source: "Confronting Reward Model Overoptimization with Constrained RLHF";
  tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py, which steps lambda once a
  minibatch and starts it at N(0, 0.01), here 0.
  Raises ValueError unless every component has its threshold.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  thresholds: tuple[float, ...] = static(default=(0.9, 0.9))
  squash: str = chosen('sigmoid', tuple(SQUASHES))
  learning_rate: float = ranged(0.1, 0.0)  # of lambda
  momentum: float = ranged(0.1, 0.0, 1.0, open_high=True)
  max_gradient: float = ranged(0.5, 0.0, open_low=True)
  eps: float = ranged(1e-8, 0.0, open_low=True)  # added to the variance
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('logp', 'logp_ref')
  min_group_size: ClassVar[int] = 2

  def __post_init__(self):
    if len(self.components) != len(self.thresholds):
      raise ValueError(
        f'Lagrangian.thresholds = {self.thresholds} must have one number for '
        f'each of components = {self.components}'
      )

  def init(self, num_prompts: int) -> dict[str, Array]:
    """All multipliers 0."""
    del num_prompts
    zeros = jnp.zeros(len(self.components))
    return {'multipliers': zeros, 'momentum': zeros}

  def _advantage(self, reward_B: Array, traj: Trajectories) -> Array:
    valid_NG = by_group(traj.valid_B, traj.group_size)
    reward_NG = by_group(reward_B, traj.group_size)
    centered_NG = masked_center(reward_NG, valid_NG, axis=1)
    return ungroup(whiten(centered_NG, valid_NG, self.eps))

  def __call__(
    self, credit_B: Array, traj: Trajectories, state: dict[str, Array]
  ) -> tuple[Array, dict[str, Array]]:
    """[B] -> [B]."""
    chex.assert_rank(credit_B, 1)
    missing = sorted(set(self.components) - set(traj.rewards))
    if missing:
      raise ValueError(
        f'Lagrangian.components names {missing}, but the task returns '
        f'{sorted(traj.rewards)}'
      )
    reward_KB = jnp.stack([traj.rewards[name] for name in self.components])
    gap_BT = traj.logp_old_BT - traj.logp_ref_BT
    kl_B = -masked_sum(gap_BT, traj.mask_BT, axis=1)
    squash, held_K = SQUASHES[self.squash], state['multipliers']
    phi_K = squash(held_K)
    advantage_KB = jax.vmap(lambda r_B: self._advantage(r_B, traj))(reward_KB)
    base = 1.0 if self.squash == 'none' else len(phi_K) - phi_K.sum()
    mixed_B = base * self._advantage(kl_B, traj) + phi_K @ advantage_KB
    mean_K = jax.vmap(lambda r_B: masked_mean(r_B, traj.valid_B))(reward_KB)
    violation_K = mean_K - jnp.asarray(self.thresholds)
    gradient_K = jax.grad(lambda x_K: squash(x_K) @ violation_K)(held_K)
    norm = safe_sqrt((gradient_K**2).sum())
    gradient_K *= self.max_gradient / jnp.maximum(norm, self.max_gradient)
    momentum_K = self.momentum * state['momentum'] + gradient_K
    held_K -= self.learning_rate * momentum_K
    if self.squash == 'none':
      held_K = jnp.maximum(held_K, 0.0)
    return mixed_B, {'multipliers': held_K, 'momentum': momentum_K}
