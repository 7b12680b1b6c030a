"""DR-PO: rows begin with a part of the response that the data hold."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.checks import ranged
from rl_jax.data.completions import encode_recorded
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.forced import begin_with, cut_lengths
from rl_jax.types import Array, Trajectories


@piece
class DatasetReset(RolloutWrapper):
  """With probability beta a row begins with the first l reference tokens.

    l = 0 with probability 1 - beta, and where L < 2
    l is uniform on {1, ..., L - 1} else

  L: tokens of the reference, the end token among them, T at most. It is the
  first response that the data hold, of a conversation its first turn, and the
  task's target where there are no data. The l tokens are part of the response
  that is judged and have kind FORCED: they are in no loss, advantage, value
  target or KL. What follows is sampled, one token at least. Every row has its
  own draw; beta = 0 samples as without the piece. With beta = 1 the first token
  of a response is never trained, so that a policy must know how to begin. Fills
  extras 'prefix_B', l.
  Source: "Dataset Reset Policy Optimization for RLHF"; Cornell-RL/tril
  logit_processors.py (RollinProcessor).
  """

  beta: float = ranged(1.0, 0.0, 1.0)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task has no references."""
    task = context.task
    if task is None:
      return
    if not (task.supports('recorded') or task.supports('target')):
      raise ValueError(
        'method.rollout: DatasetReset needs a task with reference responses, '
        f'but {type(task).__name__} has neither `recorded` nor `target`'
      )

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Writes the beginnings into empty rows."""
    given = references(sampler, traj.response_BT.shape[1])
    return sampler.run_rows(self._behind_prefix, traj, sampler.key, *given)

  def _behind_prefix(
    self, traj: Trajectories, key: Array, token_NT: Array, length_N: Array
  ) -> Trajectories:
    """Rows with the first tokens of their group's reference."""

    def per_row(x):
      return jnp.repeat(x, traj.group_size, axis=0)

    keys_B = randomness.row_keys(
      randomness.purpose_key(key, randomness.CUTS), traj.row_id_B2
    )

    def draw(n):
      return randomness.token_uniform(keys_B, jnp.full(len(keys_B), n))

    prefix_B = cut_lengths(self.beta, per_row(length_N), draw(0), draw(1))
    begun = begin_with(traj, per_row(token_NT), prefix_B)
    return begun.replace(extras={**traj.extras, 'prefix_B': prefix_B})


def references(sampler: Any, width: int) -> tuple[np.ndarray, np.ndarray]:
  """(tokens [N, width], L [N]) of the examples that are being sampled."""
  examples = sampler.examples
  token_NT = np.zeros((len(examples), width), np.int32)
  length_N = np.zeros(len(examples), np.int32)
  for n, example in enumerate(examples):
    recorded = sampler.task.recorded(example)[0]
    ids, by_policy = encode_recorded(example, recorded, sampler.tokenizer)
    first_turn = [*by_policy, False].index(False)
    ids = ids[: min(first_turn, width)]
    token_NT[n, : len(ids)], length_N[n] = ids, len(ids)
  return token_NT, length_N
