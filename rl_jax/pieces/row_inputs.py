"""Inputs of pieces from outside the model, by documented key.

Rows are described by whoever produced them: the task, the environment, a
rollout wrapper. A value per row may also arrive as a reward component of
weight 0 (a task that returns {'outcome': 1.0, 'cluster_id': 3.0}): the key is
then the component's name without `_B`. For a key on `_NM` (M = 1) the rows of a
prompt share one value. A key that a single piece reads is documented by that
piece, in `reads: ClassVar[dict[str, str]]`. `score` adds the statistics of the
sampling policy that a piece names in `needs` ('hidden', 'group_probs', ...).
"""

from typing import Any

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.ops.reward_components import called
from rl_jax.pieces.row_keys import KEYS
from rl_jax.types import ENVIRONMENT, Array, Trajectories

NO_LABEL = -(2.0**100)  # in extras 'aspect_label_BA': the data have none
NO_CUT = 1 << 30  # in extras 'cut_BC': the row has fewer cuts


class MissingInputError(ValueError):
  """Nothing was given under the key that a piece reads."""

  def __init__(self, key: str, text: str):
    super().__init__(text)
    self.key = key


def read(traj: Trajectories, key: str, meaning: str = '') -> Array:
  """traj.extras[key], or the reward component of that name.

  Args:
    traj: the rows.
    key: one of KEYS, or one that the piece documents itself.
    meaning: what a key that is not in KEYS holds.

  Raises:
    MissingInputError: nothing was given under the key; the text says what it
      should hold.
  """
  if key in traj.extras:
    return traj.extras[key]
  component, _, axes = key.rpartition('_')
  found = called(component, traj.rewards)
  if axes == 'B' and found is not None:
    return traj.rewards[found]
  if axes == 'NM' and found is not None:
    value_NG = by_group(traj.rewards[found], traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    return masked_mean(value_NG, valid_NG, axis=1, keepdims=True)
  hint = ''
  if axes in ('B', 'NM'):
    hint = f', or let the task return a component {component!r} of weight 0'
  raise MissingInputError(
    key,
    f'traj.extras[{key!r}] is missing ({KEYS.get(key, meaning)}): fill it in '
    f'before make_batch{hint}',
  )


def components(piece: Any, traj: Trajectories) -> Array:
  """The reward components that piece.components names, [K, B].

  Components of reward functions may be named with or without the function.

  Raises: ValueError naming those that neither task nor reward models have.
  """
  names = [called(name, traj.rewards) for name in piece.components]
  found = [name for name in names if name is not None]
  if len(found) < len(names) or not found:
    raise ValueError(
      f'{type(piece).__name__}.components = {piece.components}, but the '
      f'rewards are {sorted(traj.rewards)}: those of the task and of '
      'reward_models'
    )
  return jnp.stack([traj.rewards[name] for name in found])


def sampled_B(traj: Trajectories) -> Array:
  """1 on rows that the policy has written, 0 on rows from data, [B]."""
  return 1.0 - traj.extras.get('logged_B', jnp.zeros_like(traj.weight_B))


def policy_tokens_B(traj: Trajectories, end_B: Array) -> Array:
  """Returns how many of the first end_B response tokens the environment did not
  say.

  float32 [B]. With end_B = traj.length_B it is the policy's length, to which a
  long reply of a tool adds nothing. Equal to end_B for single responses.
  """
  position_1T = jnp.arange(traj.kind_BT.shape[1])[None]
  said_BT = (traj.kind_BT == ENVIRONMENT) & (position_1T < end_B[:, None])
  return (end_B - said_BT.sum(1)).astype(jnp.float32)


def waits_B(traj: Trajectories) -> Array:
  """1 on responses that continue in the next iteration, else 0, [B].

  A response that ended at the token limit does not wait: it was judged, though
  `finished_B` is False.
  """
  return traj.extras.get('waits_B', jnp.zeros_like(traj.weight_B))


def cut_B(traj: Trajectories) -> Array:
  """Rows that would earn more after their last token, bool [B].

  These are responses that wait for their next window, and episodes that a limit
  or the environment has cut before they were done. A single response that
  ended at the token limit was judged as it is, so that nothing follows.
  """
  waits = waits_B(traj) > 0
  return waits if traj.turns is None else waits | ~traj.finished_B


def right_B(traj: Trajectories, above: float) -> Array:
  """The valid rows that solved their prompt, bool [B].

  By the reward component 'outcome', or by the unshaped reward where the task
  names no components. `above` is in units of
  either.
  """
  outcome_B = traj.rewards.get('outcome', traj.reward_B)
  return (outcome_B > above) & (traj.valid_B > 0)
