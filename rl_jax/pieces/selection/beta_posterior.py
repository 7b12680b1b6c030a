"""MoPPS: prompts whose predicted success rate is near a target."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.batches import check_fits
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


@piece
class BetaPosterior(Selector):
  """Thompson sampling on a Beta posterior of every prompt's success rate.

    candidates: candidate_ratio * count prompts, uniform without replacement
    g_i ~ Beta(a_i, b_i)
    'nearest': the count smallest (g - target)^2
    'band': the count nearest to [low, high], at random inside it
    after s_i of n samples succeeded, on the prompts that were drawn:
    a <- decay a + (1 - decay) a0 + n s,  b <- decay b + (1 - decay) b0 + n(1-s)

  Success is the reward, clipped to [0, 1], or with success = 'right' whether
  the response is right; failed verifications (NaN) do not count. State: a, b,
  and the number of batches, which is folded into the key.
  Source: "Can Prompt Difficulty be Online Predicted for Accelerating RL
  Finetuning of Reasoning Models?"; thu-rllab/MoPPS mopps.py, where n = 1 sets
  a = b = 8 by operator precedence.
  """

  candidate_ratio: int = ranged(8, 1, static=True)  # 1 is a uniform draw
  target: float = ranged(0.5, 0.0, 1.0)
  low: float = ranged(0.3, 0.0, 1.0)  # of the band
  high: float = ranged(0.7, 0.0, 1.0)
  decay: float = ranged(0.5, 0.0, 1.0)  # 1 never forgets
  prior_success: float = ranged(1.0, 0.0, open_low=True)  # a0
  prior_failure: float = ranged(1.0, 0.0, open_low=True)  # b0
  rule: str = chosen('nearest', ('nearest', 'band'))
  success: str = chosen('reward', ('reward', 'right'))

  def init(self, num_prompts: int) -> dict[str, Array]:
    """The prior of every prompt."""
    return {
      'a': jnp.full(num_prompts, self.prior_success, jnp.float32),
      'b': jnp.full(num_prompts, self.prior_failure, jnp.float32),
      'batches': jnp.zeros((), jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    size = state['a'].shape[0]
    check_fits(count, size)
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, state['batches'])
    order_key, beta_key = jax.random.split(key)
    candidates = min(self.candidate_ratio * count, size)
    ids = jax.random.permutation(order_key, size)[:candidates]
    rate = jax.random.beta(beta_key, state['a'][ids], state['b'][ids])
    distance = (rate - self.target) ** 2
    if self.rule == 'band':
      outside = jnp.maximum(self.low - rate, rate - self.high)
      distance = jnp.maximum(outside, 0.0)
    # A stable sort: candidates inside the band keep their random order.
    chosen = ids[jnp.argsort(distance, stable=True)[:count]]
    return chosen.astype(jnp.int32), {**state, 'batches': state['batches'] + 1}

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """Updates the posteriors with the rewards of the groups."""
    known = jnp.isfinite(summary.reward_NG)
    success = jnp.clip(summary.reward_NG, 0.0, 1.0)
    if self.success == 'right':
      success = jnp.asarray(summary.right_NG, jnp.float32)
    wins = jnp.where(known, success, 0.0).sum(1)
    losses = known.sum(1) - wins
    keep, ids = self.decay, jnp.asarray(ids)
    a = keep * state['a'][ids] + (1.0 - keep) * self.prior_success + wins
    b = keep * state['b'][ids] + (1.0 - keep) * self.prior_failure + losses
    return {
      **state,
      'a': state['a'].at[ids].set(a),
      'b': state['b'].at[ids].set(b),
    }
