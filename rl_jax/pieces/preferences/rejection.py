"""RSO: pairs among samples of the reward-tilted policy, by rejection."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops import links
from rl_jax.pieces.ops.edges import oriented, row_reward
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Pairs
from rl_jax.randomness import PIECES, purpose_key, row_token_uniform
from rl_jax.types import Array


@piece
class Rejection(Pairs):
  """Keeps some of G samples as if drawn from pi exp(R / beta); random pairs.

  pi is what the samples were drawn from: the start in the paper, which
  rollouts.wrappers.Against(trained='opponent') draws from.
  Repeat: of the samples that remain, each is accepted where
  u < exp((R - largest R that remains) / beta), u uniform; of more than are
  needed a random choice is kept. Equal rewards make no edge; invalid samples
  are never accepted. The draws depend only on `seed` and on the serial numbers
  of the rows.
  Source: RSO, Algorithm of appendix A.1 (read in paper by a digest), there
  in the order of the samples and by distinct texts.
  """

  beta: float = ranged(0.5, 0.0, open_low=True)  # of rewards
  keep: int = ranged(2, 2, static=True)  # k of the paper is 8, of 64 samples
  seed: int = ranged(0, static=True)
  gives = links.NOTHING
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """keep // 2 edges; keep is at most G."""
    reward, traj = ctx.credit, ctx.traj
    G, k = traj.group_size, min(self.keep, traj.group_size)
    key = purpose_key(jax.random.key(self.seed), PIECES)
    uniform_BU = row_token_uniform(key, traj.row_id_B2, 2 * k + 1)
    uniform_NGU = by_group(uniform_BU, G)
    reward_NG = by_group(row_reward(reward, traj), G)
    left_NG = by_group(traj.valid_B > 0, G)
    accepted_NG = jnp.zeros_like(left_NG)
    for sweep in range(k):  # each accepts at least the best that remains
      largest_N1 = jnp.where(left_NG, reward_NG, -jnp.inf).max(1, keepdims=True)
      chance_NG = jnp.exp((reward_NG - largest_N1) / self.beta)
      passed_NG = left_NG & (uniform_NGU[:, :, 2 * sweep] < chance_NG)
      room_N1 = k - accepted_NG.sum(1, keepdims=True)
      place_NG = _rank(uniform_NGU[:, :, 2 * sweep + 1], passed_NG)
      passed_NG &= place_NG < room_N1
      accepted_NG |= passed_NG
      left_NG &= ~passed_NG
    order_NG = jnp.argsort(
      jnp.where(accepted_NG, uniform_NGU[:, :, -1], jnp.inf), axis=1
    )
    first_NE, second_NE = order_NG[:, 0 : k - 1 : 2], order_NG[:, 1:k:2]

    def at(x: Array, index: Array):
      return jnp.take_along_axis(x, index, axis=1)

    gap_NE = at(reward_NG, first_NE) - at(reward_NG, second_NE)
    both_NE = at(accepted_NG, first_NE) & at(accepted_NG, second_NE)
    return CreditOut(
      oriented(first_NE, second_NE, jnp.where(both_NE, gap_NE, 0.0), 0.0)
    )


def _rank(key_NG: Array, among_NG: Array):
  """0 for the smallest key of those that are among, and so on, [N, G]."""
  order_NG = jnp.argsort(jnp.where(among_NG, key_NG, jnp.inf), axis=1)
  return jnp.argsort(order_NG, axis=1)
