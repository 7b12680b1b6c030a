"""PAR: a learned reward as the probability of beating reference responses."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, static

_GRID = np.linspace(-5.0, 5.0, 100)
# Of degree 5, by least squares at these points, as the released code fits it.
_COEFFICIENTS = np.polyfit(_GRID, 1.0 / (1.0 + np.exp(-_GRID)), 5)


def fitted_polynomial(x: Array) -> Array:
  """A polynomial near sigmoid(x) in -5 to 5; 0 below, 1 above."""
  inside = jnp.polyval(jnp.asarray(_COEFFICIENTS, x.dtype), x.clip(-5.0, 5.0))
  return jnp.where(x <= -5.0, 0.0, jnp.where(x >= 5.0, 1.0, inside))


LINKS = {
  'sigmoid': jax.nn.sigmoid,
  'identity': lambda x: x,
  'tanh': jnp.tanh,
  'arctan': jnp.arctan,
  'log_sigmoid': jax.nn.log_sigmoid,
  'polynomial': fitted_polynomial,
}


@piece
class ReferenceSigmoid(Shaping):
  """R = mean_j f(k (r - shift - ref_j)), r less a penalty on long responses.

    r = min(reward, ceiling) - length_coef * max(0, tokens - free_tokens)
    f: link; 'sigmoid' is PAR's, bounded in (0, 1) and 1/2 at the reference

  Tokens are those of the response that the environment has not said.
  ref_j are the rewards of M fixed reference responses to the prompt, from
  extras['reference_reward_NM'], or one 0 without `references`. Its siblings:
  'identity' is the centred reward, which a group's mean and standard deviation
  make GRPO again, but for a ceiling; 'tanh', 'arctan' and 'polynomial' bound
  it; 'sigmoid' with shift 3 grows slowly at first (SGFC).
  With `quantile` the rewards of the references are one number, mean + z (std +
  1e-5), ddof 1, z the normal quantile; 'log_sigmoid' against it is LSC.
  Source: "Reward Shaping to Mitigate Reward Hacking in RLHF"; PorUna-byte/PAR
  reward_shaper.py.
  Raises ValueError for a quantile without references.
  """

  k: float = ranged(1.0, 0.0, open_low=True)  # per unit of reward
  link: str = chosen('sigmoid', tuple(LINKS))
  shift: float = ranged(0.0)  # in units of the reward
  references: bool = static(default=True)
  ceiling: float | None = ranged(None)  # None: off; in units of the reward
  quantile: float | None = ranged(None, 0.0, 1.0, open_low=True, open_high=True)
  length_coef: float = ranged(0.01, 0.0)  # reward per token
  free_tokens: float = ranged(300.0, 0.0)

  def __post_init__(self):
    if self.quantile is not None and not self.references:
      raise ValueError(
        f'ReferenceSigmoid.quantile = {self.quantile} is that of rewards of '
        'references: leave references=True'
      )

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why there is no penalty on length, or an empty text."""
    if not self.length_coef or max_response_tokens > self.free_tokens:
      return ''
    return (
      f'free_tokens = {self.free_tokens:g} tokens have no penalty on length'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    reference_NM = jnp.zeros((traj.num_prompts, 1))
    if self.references:
      reference_NM = row_inputs.read(traj, 'reference_reward_NM')
    if self.quantile is not None:
      reference_NM = _quantile(reference_NM, self.quantile)
    reference_BM = jnp.repeat(reference_NM, traj.group_size, axis=0)
    tokens_B = row_inputs.policy_tokens_B(traj, traj.length_B)
    excess_B = tokens_B - self.free_tokens
    if self.ceiling is not None:
      reward_B = jnp.minimum(reward_B, self.ceiling)
    raw_B = reward_B - self.length_coef * jnp.maximum(excess_B, 0.0)
    gap_BM = raw_B[:, None] - self.shift - reference_BM
    return CreditOut(LINKS[self.link](self.k * gap_BM).mean(1))


def _quantile(reference_NM: Array, quantile: float):
  """The quantile of a normal distribution fitted to M rewards, [N, 1]."""
  count = max(reference_NM.shape[1] - 1, 1)
  mean_N1 = reference_NM.mean(1, keepdims=True)
  squares_N1 = ((reference_NM - mean_N1) ** 2).sum(1, keepdims=True)
  std_N1 = jnp.sqrt(squares_N1 / count)
  return mean_N1 + jax.scipy.special.ndtri(quantile) * (std_N1 + 1e-5)
