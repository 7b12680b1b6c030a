"""Messages of episodes, and an annotator that says which of them help."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.types import ENVIRONMENT, Array, Trajectories

READS = {
  'message_BT': 'at the last token of a message that the environment said, 1 '
  '+ its number; else 0'
}


def turn_messages(traj: Trajectories, message_BT: Array, turns: int) -> Array:
  """Number of the message that answered each turn, int32 [B, K]; -1: none.

  What the environment says is a part of the turn that it opens, so it is the
  answer to the turn before. The answer to a last turn is in no row.
  """
  if traj.turn_BT is None:
    return jnp.full((traj.mask_BT.shape[0], turns), -1)
  said_BT = jnp.where(traj.kind_BT == ENVIRONMENT, message_BT, 0)
  said_BT = said_BT.astype(jnp.int32)
  # Turn 0 has no turn before it: its messages fall into their own column.
  answered_BT = jnp.where(traj.turn_BT > 0, traj.turn_BT - 1, turns)

  def largest(x_T: Array, index_T: Array):
    return jax.ops.segment_max(x_T, index_T, num_segments=turns + 1)

  number_BK = jax.vmap(largest)(said_BT, answered_BT)[:, :turns]
  return jnp.maximum(number_BK, 0) - 1


def occurrences(message_BK: Array) -> Array:
  """N: how often the message of a turn was said so far, this one included."""
  same_BKK = message_BK[:, :, None] == message_BK[:, None, :]
  until_KK = jnp.tril(jnp.ones(same_BKK.shape[1:], bool))
  return (same_BKK & until_KK[None]).sum(axis=2).astype(jnp.float32)


def features(factors: tuple[int, ...]) -> np.ndarray:
  """One-hot digits of every number, [M, sum of factors]; first digit first."""
  digits = np.unravel_index(np.arange(np.prod(factors)), factors)
  hot = [
    np.eye(n, dtype=np.float32)[d] for n, d in zip(factors, digits, strict=True)
  ]
  return np.concatenate(hot, axis=1)


def newest(first_M: Array, asked_M: Array, count: int) -> Array:
  """Returns what is labelled next, bool [M]: what was seen first the latest.

  first_M: iteration in which a message was first seen, -1: never.
  """
  waits_M = (first_M >= 0) & ~asked_M
  order_M = jnp.argsort(jnp.where(waits_M, -first_M, jnp.iinfo(jnp.int32).max))
  place_M = jnp.zeros_like(order_M).at[order_M].set(jnp.arange(len(order_M)))
  return waits_M & (place_M < count)


def labels(helpful_M: Array, error: Array | float, seed: int) -> Array:
  """1 for what helps and 0 for the rest, wrong with probability `error`.

  A message has one label for ever, as an answer of a model at temperature 0.
  """
  drawn_M = jax.random.uniform(jax.random.key(seed), helpful_M.shape)
  return jnp.where(drawn_M < error, 1.0 - helpful_M, helpful_M)


def compared(
  helpful_M: Array, seen_M: Array, error: Array | float, key: Array, count: int
) -> Array:
  """Shares of wins [M, M] in `count` random pairs of seen messages.

  [a, b] is what a won against b: 1 if it helps more, 1/2 in a tie. A wrong
  verdict, with probability `error`, is the opposite, of a tie either.
  """
  keys = jax.random.split(key, 4)
  weight_M = jnp.where(seen_M, 0.0, -jnp.inf)
  weight_M = jnp.where(seen_M.any(), weight_M, 0.0)
  first_C, second_C = (
    jax.random.categorical(k, weight_M, shape=(count,)) for k in keys[:2]
  )
  verdict_C = 0.5 + 0.5 * (helpful_M[first_C] - helpful_M[second_C])
  either_C = jax.random.bernoulli(keys[2], shape=(count,)).astype(jnp.float32)
  wrong_C = jnp.where(verdict_C == 0.5, either_C, 1.0 - verdict_C)
  is_wrong_C = jax.random.uniform(keys[3], (count,)) < error
  verdict_C = jnp.where(is_wrong_C, wrong_C, verdict_C)
  counted_C = ((first_C != second_C) & seen_M.any()).astype(jnp.float32)
  wins_MM = jnp.zeros((len(helpful_M),) * 2)
  wins_MM = wins_MM.at[first_C, second_C].add(counted_C * verdict_C)
  return wins_MM.at[second_C, first_C].add(counted_C * (1.0 - verdict_C))


def classification_loss(weight_F: Array, phi_MF: Array, label_M: Array):
  """Mean of -log p(label) over the labelled messages; label -1: none."""
  logit_M = phi_MF @ weight_F
  known_M = (label_M >= 0).astype(jnp.float32)
  loss_M = jax.nn.softplus(jnp.where(label_M > 0, -logit_M, logit_M))
  return (known_M * loss_M).sum() / jnp.maximum(known_M.sum(), 1.0)


def ranking_loss(weight_F: Array, phi_MF: Array, wins_MM: Array) -> Array:
  """-sum_c y_c log softmax(r_1, r_2)_c, mean over pairs; r = phi w."""
  score_M = phi_MF @ weight_F
  loss_MM = jax.nn.softplus(score_M[None, :] - score_M[:, None])
  return (wins_MM * loss_MM).sum() / jnp.maximum(wins_MM.sum(), 1.0)
