"""One answer out of several samples: votes weighted by self-certainty."""

from collections.abc import Sequence
import functools
from typing import Any
import zlib

import jax
import numpy as np

from rl_jax.learning.statistics import Forward, statistics_in_microbatches
from rl_jax.models import transformer
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.statistics.certainty import Certainty
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import Array, Trajectories

CLUSTER = 'reward/cluster_id'  # equal for equal answers, -1 without an answer
NO_ANSWER = -1


def winners(
  certainty_NK: np.ndarray, answer_NK: np.ndarray, power: float
) -> np.ndarray:
  """The sample that wins for each prompt, int [N]; NO_ANSWER if none can.

  A sample of rank r by falling certainty gives (K - r + 1)^power votes to its
  answer, one that is NO_ANSWER none; the first sample of the answer with most
  votes wins. Equal certainties keep the order of samples, equal votes that of
  answers. power 0 is the majority, infinity the most certain answer.
  Source: "Scalable Best-of-N Selection for Large Language Models via
  Self-Certainty"; backprop07/Self-Certainty voting_from_list.py.
  """
  pairs = zip(certainty_NK, answer_NK, strict=True)
  return np.asarray([_winner(*pair, power) for pair in pairs])


def _winner(certainty_K, answer_K, power):
  answered = answer_K != NO_ANSWER
  if not answered.any():
    return NO_ANSWER
  K, order = len(answer_K), np.argsort(-certainty_K, kind='stable')
  if np.isinf(power):
    best = next(answer_K[k] for k in order if answered[k])
    return int(np.argmax(answer_K == best))
  votes_K = np.empty(K)
  votes_K[order] = (1.0 - np.arange(K) / K) ** power  # K^-power times those
  votes: dict[Any, float] = {}  # in the order of samples
  for k in np.flatnonzero(answered):
    votes[answer_K[k]] = votes.get(answer_K[k], 0.0) + votes_K[k]
  return int(np.argmax(answer_K == max(votes, key=votes.__getitem__)))


def outcomes(
  arrays: dict[str, np.ndarray], power: float
) -> dict[str, np.ndarray]:
  """vote/NAME [N, 1]: outcome of the winner, 0 without an answer.

  Args:
    arrays: [N, K] `certainty`, `reward/outcome` and the answers: CLUSTER where
      the task has it (see tasks.votes), else `text`, of tasks whose answers are
      whole responses. A sample that was not judged has no answer.
    power: of `borda`; `majority` and `certain` are the limits of it.
  """
  right_NK = arrays['reward/outcome']
  answer_NK = arrays.get(CLUSTER, arrays['text']).copy()
  answer_NK[np.isnan(right_NK)] = NO_ANSWER
  found = {}
  powers = {'borda': power, 'majority': 0.0, 'certain': np.inf}
  for name, one in powers.items():
    winner_N = winners(arrays['certainty'], answer_NK, one)
    right_N1 = np.take_along_axis(
      right_NK, np.maximum(winner_N, 0)[:, None], axis=1
    )
    found[f'vote/{name}'] = np.where(winner_N[:, None] < 0, 0.0, right_N1)
  return found


def keys_of(texts: Sequence[str]) -> list[int]:
  """Numbers of texts, equal for equal ones; NO_ANSWER for an empty one."""
  texts = [text.strip() for text in texts]
  return [zlib.crc32(text.encode()) if text else NO_ANSWER for text in texts]


def make_certainty(model: transformer.ModelConfig, mesh: jax.sharding.Mesh):
  """Jitted (params, traj) -> mean self-certainty of rows, nats, [B].

  Of the model's own distributions, at temperature 1 and without transforms, one
  group at a time on each device.
  """
  shards = mesh.shape['data'] * mesh.shape['fsdp']

  @functools.partial(jax.jit, out_shardings=mesh_lib.replicated(mesh))
  def certainty(params: Any, traj: Trajectories) -> Array:
    forward = Forward(model=model, microbatches=traj.num_prompts // shards)
    need = Certainty()
    found = statistics_in_microbatches(forward, params, traj, (need,))
    return masked_mean(found[need.name], traj.mask_BT, axis=-1)

  return certainty
