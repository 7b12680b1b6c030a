"""What pieces read from outside the model, by documented key.

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
from rl_jax.types import Array, Trajectories

NO_CUT = 1 << 30  # in extras 'cut_BC': the row has fewer cuts

KEYS = {
  'chosen_B': (
    'label of the data: 1 for a chosen or desirable response, 0 for a rejected '
    'one, below 0 for rows without a label; filled by rows from data'
  ),
  'cluster_id_B': (
    'a number for the final answer, equal for equivalent answers of one '
    'prompt; below 0: the response has no answer; QuestionAnswer has it with '
    'clusters=True'
  ),
  'cut_BC': 'rising token positions behind which values are known, or NO_CUT',
  'cut_value_BC': 'mean reward of continuations from behind each cut',
  'difficulty_B': 'weight of the prompt in the loss, larger is harder, >= 0',
  'first_call_B': (
    'token position of the first tool call, or of the turn that makes it; '
    'below 0: no call; filled by episodes'
  ),
  'forced_B': '1 if the mode was forced on the row by a prefix, else 0',
  'format_id_B': 'a number for the reasoning format of the response',
  'group_probs': (
    'probabilities of all response tokens of the group, [B, T, G * T]; filled '
    'by score'
  ),
  'hidden': 'final hidden states [B, T, D]; filled by score',
  'hit_rank_B': 'rank, from 1, of the first right candidate; 0: none is right',
  'logged_B': '1 on rows from data, 0 on sampled ones; filled by the source',
  'marginal_gain_BT': 'F(prefix and token) - F(prefix) of a set function F',
  'mismatched_B': (
    '1 on rows that hold the response to another prompt of the batch, else 0; '
    'filled by rows from data where a piece reads it'
  ),
  'mode_B': 'mode of the response: 0 is the cheapest (instant) mode',
  'num_answers_B': 'candidates in the response; below 0: it is malformed',
  'opponent_B': '1 on rows that an opponent has sampled, else 0 (Against)',
  'reference_reward_NM': 'rewards of M reference responses to each prompt',
  'segment_start_BT': '1 on the first token of a segment (step, action)',
  'self_certainty': 'self-certainty of every token [B, T]; filled by score',
  'step_label_BT': (
    'label of a step at its last token, from 0 (wrong) to 1 (right), below 0 '
    'elsewhere; filled by rows from data with labels of steps'
  ),
  'step_score_BT': (
    'probability from 0 to 1 that a step is right at its last token, below 0 '
    'elsewhere; filled by reward models with steps'
  ),
  'think_mask_BT': '1 on the tokens of the chain of thought',
  'value_heads_after': (
    'all value heads behind every token [B, T, H]; filled by score'
  ),
  'version_BT': (
    'optimizer step of the weights that wrote each token; filled where a '
    'response is written in several iterations'
  ),
  'waits_B': '1 on rows that go on in the next iteration, else 0',
  'window_start_B': 'tokens that earlier iterations wrote',
}


def read(traj: Trajectories, key: str, meaning: str = '') -> Array:
  """traj.extras[key], or the reward component of that name.

  Args:
    traj: the rows.
    key: one of KEYS, or one that the piece documents itself.
    meaning: what a key that is not in KEYS holds.

  Raises:
    ValueError: nothing was given under the key; the text says what it should
      hold.
  """
  if key in traj.extras:
    return traj.extras[key]
  component, _, axes = key.rpartition('_')
  if axes == 'B' and component in traj.rewards:
    return traj.rewards[component]
  if axes == 'NM' and component in traj.rewards:
    value_NG = by_group(traj.rewards[component], traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    return masked_mean(value_NG, valid_NG, axis=1, keepdims=True)
  hint = ''
  if axes in ('B', 'NM'):
    hint = f', or let the task return a component {component!r} of weight 0'
  raise ValueError(
    f'traj.extras[{key!r}] is missing ({KEYS.get(key, meaning)}): fill it in '
    f'before make_batch{hint}'
  )


def components(piece: Any, traj: Trajectories) -> Array:
  """The reward components that piece.components names, [K, B].

  Raises: ValueError naming those that neither task nor reward models have.
  """
  missing = sorted(set(piece.components) - set(traj.rewards))
  if missing or not piece.components:
    raise ValueError(
      f'{type(piece).__name__}.components = {piece.components}, but the '
      f'rewards are {sorted(traj.rewards)}: those of the task and of '
      'reward_models'
    )
  return jnp.stack([traj.rewards[name] for name in piece.components])


def sampled_B(traj: Trajectories) -> Array:
  """1 on rows that the policy has written, 0 on rows from data, [B]."""
  return 1.0 - traj.extras.get('logged_B', jnp.zeros_like(traj.weight_B))


def right_B(traj: Trajectories, above: float) -> Array:
  """Which valid rows solved their prompt, bool [B].

  By the reward component 'outcome', or by the unshaped reward where the task
  names no components. `above` is in units of
  either.
  """
  outcome_B = traj.rewards.get('outcome', traj.reward_B)
  return (outcome_B > above) & (traj.valid_B > 0)
