"""Constrained RLHF: multipliers hold every reward component at a threshold."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops import multipliers
from rl_jax.pieces.ops.component_returns import (
  check_components,
  component_advantages,
  group_differences,
)
from rl_jax.pieces.ops.masking import loss_mask, masked_mean, whiten
from rl_jax.pieces.ops.reward_components import component
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, Trajectories, static


@piece
class Lagrangian(Credit):
  """A = (K - sum phi) A_kl + sum_i phi_i A_i, phi_i = squash(lambda_i).

    baseline 'values': A_i = GAE(gamma, lam) of component i by output i of the
      value head, whitened over the tokens; A_kl the same of
      -(logp_old - logp_ref)_t by output K
    baseline 'group': A_i = component i minus its group mean, whitened over the
      valid rows; A_kl the same of -sum_t (logp_old - logp_ref)_t
    'sigmoid': mu-PPO, r_i >= threshold; 'tanh': xi-PPO, r_i = threshold;
    'none': A = A_kl + sum lambda_i A_i with lambda >= 0

  Then lambda takes one descent step, with momentum and a bound on the norm of
  the gradient, on sum_i phi_i (mean r_i - threshold_i). Replaces the reward.
  State: lambda, momentum.
  Source: "Confronting Reward Model Overoptimization with Constrained RLHF";
  tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py, which whitens by minibatch,
  steps lambda once a minibatch and starts it at N(0, 0.01), here 0. There is
  no 'group' in it.
  Raises ValueError unless every component has its threshold.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  thresholds: tuple[float, ...] = static(default=(0.9, 0.9))
  baseline: str = chosen('group', ('group', 'values'))
  gamma: float = ranged(0.99, 0.0, 1.0)  # with 'values': discount per token
  lam: float = ranged(0.95, 0.0, 1.0)
  squash: str = chosen('sigmoid', tuple(multipliers.SQUASHES))
  learning_rate: float = ranged(0.1, 0.0)  # of lambda
  momentum: float = ranged(0.1, 0.0, 1.0, open_high=True)
  max_gradient: float = ranged(0.5, 0.0, open_low=True)
  eps: float = ranged(1e-8, 0.0, open_low=True)  # added to the variance

  def __post_init__(self):
    if len(self.components) != len(self.thresholds):
      raise ValueError(
        f'Lagrangian.thresholds = {self.thresholds} must have one number for '
        f'each of components = {self.components}'
      )

  @property
  def needs(self) -> tuple[str, ...]:
    """The value head only where it is the baseline."""
    head = ('value_heads',) if self.baseline == 'values' else ()
    return ('logp', 'logp_ref', *head)

  @property
  def num_values(self) -> int:
    """One for each component, and one for the divergence."""
    return len(self.components) + 1 if self.baseline == 'values' else 1

  @property
  def min_group_size(self) -> int:
    """Group means need two samples."""
    return 2 if self.baseline == 'group' else 1

  def init(self, num_prompts: int) -> dict[str, Array]:
    """All multipliers 0."""
    del num_prompts
    return multipliers.initial(len(self.components))

  def _advantages(self, traj: Trajectories) -> Array:
    """Advantages of components and divergence, [H, B] or [H, B, T]."""
    if self.baseline == 'values':
      mask = loss_mask(traj) * traj.valid_B[:, None]
      found = component_advantages(self.components, traj, self.gamma, self.lam)
    else:
      mask, found = traj.valid_B, group_differences(self.components, traj)
    return jax.vmap(lambda x: whiten(x, mask, self.eps), in_axes=-1)(found)

  @property
  def offers(self) -> dict[str, Any]:
    """The constants of its advantages, for ComponentReturns."""
    shared = {
      'components': self.components,
      'gamma': self.gamma,
      'lam': self.lam,
    }
    return {'component_returns': shared}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B], with baseline 'values' [B, T]."""
    credit_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(credit_B, 1)
    check_components(self.components, traj)
    phi_K = multipliers.SQUASHES[self.squash](state['multipliers'])
    base = 1.0 if self.squash == 'none' else len(phi_K) - phi_K.sum()
    mixed = jnp.tensordot(
      jnp.append(phi_K, base), self._advantages(traj), axes=1
    )
    reward_KB = jnp.stack([component(name, traj) for name in self.components])
    mean_K = jax.vmap(lambda r_B: masked_mean(r_B, traj.valid_B))(reward_KB)
    return CreditOut(
      mixed,
      multipliers.stepped(
        state,
        mean_K - jnp.asarray(self.thresholds),
        self.squash,
        learning_rate=self.learning_rate,
        momentum=self.momentum,
        max_gradient=self.max_gradient,
      ),
    )
