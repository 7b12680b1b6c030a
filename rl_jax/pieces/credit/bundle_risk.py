"""RiskPO: scores of bundles of prompts, weighted towards the lower tail."""

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  masked_var,
  safe_sqrt,
  ungroup,
)
from rl_jax.pieces.ops.quantiles import row_quantiles
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, static

LEVELS = 19  # tracked quantiles: 0.05, 0.10, ..., 0.95
TINY = 1e-3  # deviations and sums below it are taken as none


@piece
class BundleRisk(Credit):
  """A_j = (w v + u) / (w + 1) of the bundle score S_j.

    S_j = sum of the j-th rewards of `bundle` consecutive prompts
    u = [(S - q_low)+ - (S - q_high)+ (+ q_low - q_high)] / (high - low + eps)
    v = -(q_low - S)+ / (low + eps)
    credit 'uniform': every response of j gets A_j; 'std': A_j / (std + eps) of
    its prompt's rewards; 'share': A_j dev / sum dev, dev = R - mean of its
    prompt, equal shares if the sum is 0

  q are quantiles tracked over rollouts, q_s += rate (s - mean 1[S < q_s])
  after use; until they exist a bundle uses those of its own scores. An invalid
  reward counts as its prompt's mean. The bundle is the rollout if that is
  smaller. State: quantiles, and whether they exist.
  Source: "RiskPO: Risk-based Policy Optimization via Verifiable Reward";
  RTkenny/RiskPO core_algos.py. A bundle of equal scores is not divided by its
  std (the code divides by eps).
  """

  bundle: int = ranged(5, 1, static=True)  # prompts; divides num_prompts
  # a of the paper, a level.
  low: float = ranged(0.2, 0.05, 0.95)
  high: float = ranged(0.8, 0.05, 0.95)  # b of the paper, above low
  tail: float = ranged(1.5, 0.0)  # w of the paper
  # Of the quantile tracker, in units of the score.
  rate: float = ranged(0.1, 0.0)
  eps: float = ranged(1e-6, 0.0, open_low=True)
  credit: str = chosen('share', ('uniform', 'std', 'share'))
  scale: bool = static(default=True)  # divide by the std of the bundle's S
  constant: bool = static(default=False)  # keep q_low - q_high in u
  min_group_size = 2

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No quantile is tracked yet."""
    del num_prompts
    return {'quantiles': jnp.zeros(LEVELS), 'exist': jnp.zeros((), bool)}

  def _risk(self, score: Array, q_low: Array, q_high: Array) -> Array:
    """The mixed value-at-risk weight of scores."""
    above = jnp.maximum(score - q_low, 0.0) - jnp.maximum(score - q_high, 0.0)
    if self.constant:
      above += q_low - q_high
    u = above / (self.high - self.low + self.eps)
    v = -jnp.maximum(q_low - score, 0.0) / (self.low + self.eps)
    return (self.tail * v + u) / (self.tail + 1.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B].

    Raises:
      ValueError: the bundle does not divide the number of prompts.
    """
    credit_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(credit_B, 1)
    N, G = traj.num_prompts, traj.group_size
    size = min(self.bundle, N)
    if N % size:
      raise ValueError(f'BundleRisk.bundle = {size} must divide {N} prompts')
    reward_NG, valid_NG = by_group(credit_B, G), by_group(traj.valid_B, G)
    mean_N1 = masked_mean(reward_NG, valid_NG, axis=1, keepdims=True)
    dev_NG = jnp.where(valid_NG > 0, reward_NG - mean_N1, 0.0)
    score_MG = (dev_NG + mean_N1).reshape(-1, size, G).sum(1)
    levels = jnp.arange(1, LEVELS + 1) / (LEVELS + 1)
    own_ML = row_quantiles(score_MG, levels)
    used_ML = jnp.where(state['exist'], state['quantiles'][None], own_ML)
    read = jax.vmap(jnp.interp, (None, None, 0))
    q_low_M1 = read(self.low, levels, used_ML)[:, None]
    q_high_M1 = read(self.high, levels, used_ML)[:, None]
    risk_MG = self._risk(score_MG, q_low_M1, q_high_M1)
    if self.scale:
      std_M1 = _std(score_MG, jnp.ones_like(score_MG))
      risk_MG /= std_M1 + self.eps
    risk_NG = jnp.repeat(risk_MG, size, axis=0)
    if self.credit == 'std':
      risk_NG /= _std(reward_NG, valid_NG) + self.eps
    elif self.credit == 'share':
      total_MG = dev_NG.reshape(-1, size, G).sum(1)
      total_NG = jnp.repeat(total_MG, size, axis=0)
      none_NG = jnp.abs(total_NG) < TINY
      share_NG = dev_NG / jnp.where(none_NG, 1.0, total_NG)
      risk_NG *= jnp.where(none_NG, 1.0 / size, share_NG)
    tracked = state['quantiles']
    below = (score_MG.reshape(-1, 1) < tracked[None]).mean(0)
    moved = tracked + self.rate * (levels - below)
    first = row_quantiles(score_MG.reshape(1, -1), levels)[0]
    quantiles = jnp.where(state['exist'], moved, first)
    return CreditOut(
      ungroup(risk_NG), {'quantiles': quantiles, 'exist': jnp.array(True)}
    )


def _std(x_NG: Array, valid_NG: Array) -> Array:
  """Standard deviation (ddof 1) of each row, 1 where there is none, [N, 1]."""
  std_N1 = safe_sqrt(masked_var(x_NG, valid_NG, 1, ddof=1, keepdims=True))
  return jnp.where(std_N1 < TINY, 1.0, std_N1)
