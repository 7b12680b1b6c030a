"""CurES: prompts are drawn by the spread of their outcomes."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.batches import check_fits
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


@piece
class SpreadSampling(Selector):
  """Draws a batch without replacement, prompt i in proportion to a weight.

    p_i = (s_i + 1) / (n_i + 2),  weight_i = exp(sqrt(p_i (1 - p_i)) / t)

  after s_i of n_i samples of the prompt succeeded, over all batches; success
  is a reward above 1/2, or with 'right' a right response, and failed
  verifications (NaN) do not count. A large t is a uniform draw, a small one
  takes the prompts nearest to p = 1/2. The draw adds Gumbel noise to the
  logarithms of the weights and takes the largest.
  Source: "CurES: From Gradient Analysis to Efficient Curriculum Learning for
  Reasoning LLMs"; ZexuSun/CurES epic_sampler.py, by a digest, where t_i is
  100 (s_i + 1), so that draws are practically uniform; here t is a constant,
  and its value is ours.
  """

  t: float = ranged(0.1, 0.0, open_low=True)
  success: str = chosen('reward', ('reward', 'right'))

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No prompt has been sampled."""
    return {
      'won': jnp.zeros(num_prompts, jnp.float32),
      'drawn': jnp.zeros(num_prompts, jnp.float32),
      'batches': jnp.zeros((), jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    size = state['won'].shape[0]
    check_fits(count, size)
    share_N = (state['won'] + 1.0) / (state['drawn'] + 2.0)
    log_weight_N = jnp.sqrt(share_N * (1.0 - share_N)) / self.t
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, state['batches'])
    noise_N = jax.random.gumbel(key, (size,))
    _, found = jax.lax.top_k(log_weight_N + noise_N, count)
    return found.astype(jnp.int32), {**state, 'batches': state['batches'] + 1}

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """Counts the samples of the groups."""
    known_NG = jnp.isfinite(summary.reward_NG)
    value_NG = (
      summary.right_NG if self.success == 'right' else summary.reward_NG
    )
    won_N = (known_NG & (jnp.asarray(value_NG) > 0.5)).sum(1)
    ids = jnp.asarray(ids)
    return {
      **state,
      'won': state['won'].at[ids].add(won_N),
      'drawn': state['drawn'].at[ids].add(known_NG.sum(1)),
    }
