"""HAPO: a response is compared with the shortest right one so far."""

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array


@piece
class HistoryLength(Shaping):
  """R + weight * l(L, h), h the shortest right response to the prompt so far.

    u = cos(pi/2 * L / h) if L < 2 h, else -1               shape 'cosine'
    right: l = max(-floor, u)      wrong: l = min(0, u)     no history: l = 0
    'linear', with e = (L - (1 + tau) h) / h: right: 1 - L/h if L < h, 0 if
    e < 0, else max(-floor, -e); wrong: 0 if e < 0, else max(-1, -e)

  L in tokens without what the environment said. All samples of a
  rollout see h of before it. State: h per prompt id, inf where there is none;
  merged over hosts by min.
  Source: "Training Language Models to Reason Concisely via History-Aware
  Policy Optimization"; HCY123902/HAPO utils.py (min mode).
  """

  weight: float = ranged(1.0, 0.0)  # w of the paper, in units of the reward
  floor: float = ranged(0.7, 0.0, 1.0)
  tau: float = ranged(0.1, 0.0)  # tolerance of the linear shape
  correct_above: float = 0.5  # see row_inputs.right_B
  shape: str = chosen('cosine', ('cosine', 'linear'))

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No prompt has been solved."""
    return {'shortest': jnp.full(num_prompts, jnp.inf)}

  def _length_term(self, ratio_B: Array, right_B: Array) -> Array:
    """l as a function of L / h, [B]."""
    if self.shape == 'cosine':
      u_B = jnp.cos(0.5 * jnp.pi * jnp.minimum(ratio_B, 2.0))
      return jnp.where(
        right_B, jnp.maximum(-self.floor, u_B), jnp.minimum(0.0, u_B)
      )
    excess_B = ratio_B - (1.0 + self.tau)
    over_B = jnp.where(excess_B < 0, 0.0, -excess_B)
    short_B = jnp.where(ratio_B < 1, 1.0 - ratio_B, 0.0)
    return jnp.where(
      right_B,
      jnp.maximum(-self.floor, short_B + over_B),
      jnp.maximum(-1.0, over_B),
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    id_B = jnp.repeat(traj.prompt_id_N, traj.group_size)
    right_B = row_inputs.right_B(traj, self.correct_above)
    length_B = row_inputs.policy_tokens_B(traj, traj.length_B)
    # An id beyond the table has no history: plain indexing would read the last.
    shortest_B = state['shortest'].at[id_B].get(mode='fill', fill_value=jnp.inf)
    known_B = jnp.isfinite(shortest_B)
    # An empty right response counts as one token: 0 / 0 is not a length.
    base_B = jnp.maximum(jnp.where(known_B, shortest_B, 1.0), 1.0)
    ratio_B = length_B / base_B
    term_B = jnp.where(known_B, self._length_term(ratio_B, right_B), 0.0)
    found_B = jnp.where(right_B, length_B, jnp.inf)
    shortest = state['shortest'].at[id_B].min(found_B, mode='drop')
    return CreditOut(reward_B + self.weight * term_B, {'shortest': shortest})
