"""Cosines of the states of responses with a goal, and responses cut by them.

The goal is the mean of the last states of good responses; the cosine of a state
with it is a score of a partial response, as of a Q function. A batch of samples
can then be thinned while it is written: what points away is discarded. The
sample with the largest cosine may be chosen, or the search may follow it.
Source: "Learning Goal-Conditioned Representations for Language Reward Models",
2024; goal-conditioned-rm, by a digest of the code. Thresholds by a share of
right responses that should stay are of this code.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.data.row_selection import ranks
from rl_jax.decoding.look_ahead import Heuristic
from rl_jax.learning.hidden_states import Forward, states_before
from rl_jax.measures import reward_heuristic
from rl_jax.models import transformer
from rl_jax.pieces.ops.masking import last_token, safe_divide
from rl_jax.types import Array, Trajectories

FIRST = 5  # tokens that are always written


def token_states(
  model: transformer.ModelConfig, params: Any, traj: Trajectories
) -> dict[str, Array]:
  """state: hidden states that predict the trained tokens, [B, T, D], and mask,
  [B, T]; those that `regularizers.ContrastiveGoal` trains.
  """
  state_BTD = states_before(Forward(model=model), params, traj)
  return {'state': state_BTD, 'mask': traj.mask_BT > 0}


def goal(state_NTD: np.ndarray, mask_NT: np.ndarray) -> np.ndarray:
  """The mean of the last states of the rows, [D].

  Raises: ValueError for a row without a token.
  """
  if not mask_NT.any(1).all():
    raise ValueError('a response has no token, so it has no last state')
  last_N = _last(mask_NT)
  return state_NTD[np.arange(len(last_N)), last_N].mean(0)


def cosines(state_NTD: np.ndarray, goal_D: np.ndarray) -> np.ndarray:
  """The cosine of every state with the goal, [N, T]; 0 for a state of 0."""
  size_NT = np.linalg.norm(state_NTD, axis=2) * np.linalg.norm(goal_D)
  return state_NTD @ goal_D / np.where(size_NT > 0, size_NT, 1.0)


def lowest(
  cosine_NT: np.ndarray, mask_NT: np.ndarray, share: float
) -> np.ndarray:
  """The least cosine of each row from token max(FIRST, share * T) on, [N].

  T is the number of trained tokens, which are the first of a row; tokens count
  from 0. Infinite for a row that has no such token: it is never discarded.
  """
  return np.where(_judged(mask_NT, share), cosine_NT, np.inf).min(1)


def written(
  cosine_NT: np.ndarray, mask_NT: np.ndarray, share: float, threshold: float
) -> np.ndarray:
  """Tokens of each row that are written until it is discarded, int [N]; all of
  a row that stays.
  """
  size_N = mask_NT.sum(1)
  fails_NT = _judged(mask_NT, share) & (cosine_NT < threshold)
  # The state that predicts token t has read the t tokens before it.
  return np.where(fails_NT.any(1), fails_NT.argmax(1), size_N)


def last_cosine(cosine_NT: np.ndarray, mask_NT: np.ndarray) -> np.ndarray:
  """The cosine of the last state of each row, [N]; 0 for a row without one."""
  found_N = cosine_NT[np.arange(len(cosine_NT)), _last(mask_NT)]
  return np.where(mask_NT.any(1), found_N, 0.0)


def goal_heuristic(
  model: transformer.ModelConfig, params: Any, goal_D: np.ndarray
) -> Heuristic:
  """h = the cosine of the last state of a row with the goal, for look_ahead.

  The state is that which predicts the last token that is kept or looked ahead,
  as of `cosines`; it has not read that token, so one token at least is to be
  looked ahead. Its inputs are reward_heuristic.prompts. A row without a token
  has 0.
  Raises: ValueError for a goal of 0, with which no state has a cosine.
  """
  size = float(np.linalg.norm(goal_D))
  if size == 0:
    raise ValueError('the goal is 0, so no state has a cosine with it')
  unit_D = jnp.asarray(goal_D / size)

  def heuristic(inputs, response_BT, length_B):
    traj = reward_heuristic.rows(inputs, response_BT, length_B)
    state_BTD = states_before(Forward(model=model), params, traj)
    size_BT = jnp.linalg.norm(state_BTD, axis=2)
    cosine_BT = safe_divide(state_BTD @ unit_D, size_BT)
    return last_token(cosine_BT, traj.mask_BT)

  return heuristic


def threshold_that_keeps(lowest_N: np.ndarray, kept: float) -> float:
  """The largest threshold below which at most a share 1 - kept of these lie."""
  if not 0 <= kept <= 1:
    raise ValueError(f'kept = {kept}: it is from 0 to 1')
  ordered_N = np.sort(lowest_N)
  place = int((1 - kept) * len(ordered_N) + 1e-9)
  return float(ordered_N[min(place, len(ordered_N) - 1)])


def auroc(score_N: np.ndarray, right_N: np.ndarray) -> float:
  """P(score of a right row > score of a wrong one) + P(equal) / 2.

  NaN without rows of both kinds.
  """
  right_N = np.asarray(right_N, bool)
  good, bad = int(right_N.sum()), int((~right_N).sum())
  if not good or not bad:
    return float('nan')
  above = ranks(score_N)[right_N].sum() * (len(right_N) - 1)
  return float((above - good * (good - 1) / 2) / (good * bad))


def _last(mask_NT: np.ndarray) -> np.ndarray:
  """The place of the last trained token, int [N]; of none the last place."""
  return mask_NT.shape[1] - 1 - np.argmax(mask_NT[:, ::-1], axis=1)


def _judged(mask_NT: np.ndarray, share: float) -> np.ndarray:
  """Tokens at which a row may be discarded, bool [N, T]."""
  first_N = np.maximum(FIRST, share * mask_NT.sum(1))
  place_T = np.arange(mask_NT.shape[1])
  return mask_NT & (place_T[None] >= first_N[:, None])
